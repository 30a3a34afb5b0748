package purge_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/purge"
)

// fake is a store in which only what a test names exists.
type fake struct {
	runs     []core.UnfinishedRun
	shared   []core.SessionID
	left     int64
	removed  []core.SessionID
	emptied  []core.SessionID
	canceled []core.RunID
	answers  []bool // dry or not
	users    []string
	fails    error
	compact  int
	events   int
}

func (f *fake) Exist(context.Context, string, []core.SessionID) error { return f.fails }
func (f *fake) Archived(context.Context, string, time.Time) ([]core.SessionID, error) {
	return []core.SessionID{"a", "old"}, nil
}
func (f *fake) OfUser(context.Context, string, string) ([]core.SessionID, error) {
	return []core.SessionID{"own"}, nil
}
func (f *fake) Shared(context.Context, string, string) ([]core.SessionID, error) {
	return f.shared, nil
}
func (f *fake) Memories(context.Context, string, string) ([]core.MemoryID, error) {
	return []core.MemoryID{"m"}, nil
}
func (f *fake) Unfinished(context.Context, []core.SessionID) ([]core.UnfinishedRun, error) {
	return f.runs, nil
}
func (f *fake) Session(_ context.Context, id core.SessionID, _ bool) (core.Purged, error) {
	f.removed = append(f.removed, id)
	if id == "gone" {
		return core.Purged{}, core.Errorf(core.ErrNotFound, "it is gone")
	}
	return core.Purged{Removed: map[string]int64{"sessions": 1, "messages": 2}}, nil
}
func (f *fake) FromShared(_ context.Context, _, _ string, id core.SessionID, _ bool) (core.Purged, error) {
	f.emptied = append(f.emptied, id)
	return core.Purged{Emptied: map[string]int64{"messages": 3}, Events: make([]core.Event, 2)}, nil
}
func (f *fake) User(_ context.Context, _, user string) (core.Purged, error) {
	f.users = append(f.users, user)
	return core.Purged{Removed: map[string]int64{"memories": 1}}, nil
}
func (f *fake) Answers(_ context.Context, _ core.PurgeMarks, dry bool) (int64, error) {
	f.answers = append(f.answers, dry)
	return 0, nil
}
func (f *fake) CountSessions(context.Context, []core.SessionID) (core.Purged, error) {
	return core.Purged{Removed: map[string]int64{"messages": f.left}}, nil
}
func (f *fake) CountUser(context.Context, string, string) (core.Purged, error) {
	return core.Purged{}, nil
}
func (f *fake) Cancel(_ context.Context, _ core.Scope, id core.RunID) error {
	f.canceled = append(f.canceled, id)
	return nil
}
func (f *fake) Compact(context.Context, []string) ([]string, error) {
	f.compact++
	return []string{"a note"}, nil
}
func (f *fake) Publish(_ context.Context, events []core.Event) { f.events += len(events) }

func service(f *fake, alone bool) *purge.Service {
	return purge.New(purge.Options{
		Store: f, Runs: f, Files: f, Publisher: f, Tables: []string{"sessions", "messages", "memories"}, Alone: alone, Logger: slog.New(slog.DiscardHandler),
	})
}

func TestSessions(t *testing.T) {
	t.Parallel()
	f := &fake{}
	before := core.Now()
	got, err := service(f, false).Sessions(t.Context(), core.PurgeSessions{IDs: []core.SessionID{"a", "gone", "a"}, ArchivedBefore: &before, PurgeOptions: core.PurgeOptions{Compact: true}})
	if err != nil {
		t.Fatal(err)
	}
	want := core.PurgeReport{
		Sessions:  []core.SessionID{"a", "gone", "old"},
		Tables:    []core.PurgedTable{{Table: "sessions", Removed: 2}, {Table: "messages", Removed: 4}, {Table: "memories"}},
		Compacted: true, Notes: []string{"a note"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]core.SessionID{"a", "gone", "old"}, f.removed); diff != "" {
		t.Errorf("removed, each once (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]bool{false, true}, f.answers); diff != "" {
		t.Errorf("answers were to be removed after the sessions, and counted at the end: %s", diff)
	}
}

// What is left is told, not hidden.
func TestTheProofCounts(t *testing.T) {
	t.Parallel()
	got, err := service(&fake{left: 7}, false).Sessions(t.Context(), core.PurgeSessions{IDs: []core.SessionID{"a"}})
	if err != nil || got.Left() != 7 || got.Compacted || len(got.Notes) != 1 {
		t.Errorf("got %+v, %v, want 7 left and a note about the files", got, err)
	}
}

func TestNothingIsRemovedBefore(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fake *fake
		in   core.PurgeSessions
		want error
	}{
		"no name":          {&fake{}, core.PurgeSessions{}, core.ErrInvalid},
		"one is not there": {&fake{fails: core.Errorf(core.ErrNotFound, "no")}, core.PurgeSessions{IDs: []core.SessionID{"a"}}, core.ErrNotFound},
		"a run works":      {&fake{runs: []core.UnfinishedRun{{ID: "r"}}}, core.PurgeSessions{IDs: []core.SessionID{"a"}}, core.ErrConflict},
		"dry run":          {&fake{}, core.PurgeSessions{IDs: []core.SessionID{"a"}, PurgeOptions: core.PurgeOptions{DryRun: true, Force: true, Compact: true}}, nil},
	} {
		_, err := service(tt.fake, false).Sessions(t.Context(), tt.in)
		if !errors.Is(err, tt.want) || len(tt.fake.removed)+len(tt.fake.canceled)+tt.fake.compact > 0 {
			t.Errorf("%s: got %v, removed %v, want %v and nothing removed", name, err, tt.fake.removed, tt.want)
		}
	}
}

func TestUser(t *testing.T) {
	t.Parallel()
	f := &fake{shared: []core.SessionID{"team"}}
	got, err := service(f, false).User(t.Context(), core.PurgeUser{Owner: "o", User: "u"})
	if err != nil || got.Tables[1] != (core.PurgedTable{Table: "messages", Removed: 2, Emptied: 3}) || got.Tables[2].Removed != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	if len(f.removed) != 1 || len(f.emptied) != 1 || len(f.users) != 1 || f.events != 2 {
		t.Errorf("removed %v, emptied %v, users %v, %d events told", f.removed, f.emptied, f.users, f.events)
	}
	for _, in := range []core.PurgeUser{{Owner: "o"}, {User: "u"}} {
		if _, err := service(f, false).User(t.Context(), in); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%+v: %v, want it refused: it would be everybody", in, err)
		}
	}
}

// Forced, the queued runs are canceled first; who does not end is a conflict, and
// nothing was removed. Where nobody else works, there is nobody to wait for.
func TestForce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{runs: []core.UnfinishedRun{{ID: "running", Leased: true}, {ID: "queued"}}}
		in := core.PurgeSessions{IDs: []core.SessionID{"a"}, PurgeOptions: core.PurgeOptions{Force: true}}
		begin := time.Now()
		_, err := service(f, false).Sessions(t.Context(), in)
		if !errors.Is(err, core.ErrConflict) || !strings.Contains(err.Error(), "running") || time.Since(begin) != 45*time.Second || len(f.removed) > 0 {
			t.Errorf("a run that does not end: %v after %s, removed %v", err, time.Since(begin), f.removed)
		}
		if diff := cmp.Diff([]core.RunID{"queued", "running"}, f.canceled); diff != "" {
			t.Errorf("canceled (-want +got):\n%s", diff)
		}
		f.runs[0].Leased = false // its lease is past
		if _, err := service(f, false).Sessions(t.Context(), in); err != nil || len(f.removed) != 1 {
			t.Errorf("a run that nobody works on: %v, removed %v", err, f.removed)
		}
		f.runs[0].Leased, f.canceled = true, nil
		if _, err := service(f, true).Sessions(t.Context(), in); err != nil || len(f.canceled) > 0 {
			t.Errorf("alone: %v, canceled %v", err, f.canceled)
		}
	})
}
