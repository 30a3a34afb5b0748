package purge_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/purge"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// fake is a store in which only what a test names exists.
type fake struct {
	core.AuditLog
	core.Publisher

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
	unended  core.Unended
	stale    int              // how often a session was forked meanwhile
	comes    []core.SessionID // sessions of the user that come while the first is removed
	breaks   core.SessionID   // whose removal fails
	torn     error            // of the compaction
	memories int
	noted    []core.AuditEntry
	slow     time.Duration // that counting a user takes

	forgotten []string

	mu        sync.Mutex // held by Abandoned, and by whoever changes what it returns
	abandoned []core.SessionID
	recovered []core.SessionID
}

func (f *fake) Add(_ context.Context, e core.AuditEntry) error {
	f.noted = append(f.noted, e)
	return f.fails
}

func (f *fake) Exist(context.Context, string, []core.SessionID) error { return f.fails }
func (f *fake) Archived(context.Context, string, time.Time) ([]core.SessionID, error) {
	return []core.SessionID{"a", "old"}, nil
}
func (f *fake) OfUser(context.Context, string, string) ([]core.SessionID, error) {
	if len(f.removed) > 0 {
		come := f.comes
		f.comes = nil
		return come, nil
	}
	return []core.SessionID{"own"}, nil
}
func (f *fake) Blobs(context.Context, []core.SessionID, string, string) ([]core.BlobID, error) {
	return nil, nil
}
func (f *fake) Shared(context.Context, string, string) ([]core.SessionID, error) {
	return f.shared, nil
}
func (f *fake) Memories(context.Context, string, string) ([]core.MemoryID, error) {
	return make([]core.MemoryID, f.memories), nil
}
func (f *fake) Unfinished(context.Context, []core.SessionID) ([]core.UnfinishedRun, error) {
	return f.runs, nil
}
func (f *fake) Session(_ context.Context, id core.SessionID, _ bool) (core.Purged, error) {
	if id == f.breaks {
		return core.Purged{}, errors.New("disk on fire")
	}
	if id == "busy" {
		return core.Purged{}, core.Errorf(core.ErrConflict, "a run works in it")
	}
	f.removed = append(f.removed, id)
	if id == "gone" {
		return core.Purged{}, core.Errorf(core.ErrNotFound, "it is gone")
	}
	return core.Purged{Removed: map[string]int64{"sessions": 1, "messages": 2}}, nil
}
func (f *fake) FromShared(_ context.Context, _, _ string, id core.SessionID, unended core.Unended) (core.Purged, error) {
	f.emptied, f.unended = append(f.emptied, id), unended
	if f.stale > 0 {
		f.stale--
		return core.Purged{}, core.Errorf(core.ErrStale, "it was forked")
	}
	f.shared = nil
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
func (f *fake) Abandoned(context.Context, string, int) ([]core.SessionID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.abandoned), f.fails
}
func (f *fake) Recover(_ context.Context, id core.SessionID, _ string) (core.Purged, error) {
	f.abandoned = slices.DeleteFunc(f.abandoned, func(a core.SessionID) bool { return a == id })
	f.recovered = append(f.recovered, id)
	if id == "import" {
		return core.Purged{}, nil
	}
	return core.Purged{Removed: map[string]int64{"sessions": 1}}, nil
}
func (f *fake) CountSessions(context.Context, []core.SessionID) (core.Purged, error) {
	return core.Purged{Removed: map[string]int64{"messages": f.left}}, nil
}
func (f *fake) CountUser(context.Context, string, string) (core.Purged, error) {
	time.Sleep(f.slow)
	return core.Purged{}, nil
}
func (f *fake) Cancel(_ context.Context, _ core.Tenant, id core.RunID) error {
	f.canceled = append(f.canceled, id)
	return nil
}
func (f *fake) Compact(context.Context, []string) ([]string, error) {
	f.compact++
	return []string{"a note"}, f.torn
}
func (f *fake) Publish(_ context.Context, events []core.Event) { f.events += len(events) }

func service(f *fake) *purge.Service {
	return purge.New(purge.Options{
		Store: f, CancelRun: f.Cancel, CompactFiles: f.Compact, Publisher: f, Tables: []string{"sessions", "messages", "memories"}, Audit: f, Logger: slog.New(slog.DiscardHandler),
	})
}

func TestSessions(t *testing.T) {
	t.Parallel()
	f := &fake{}
	before := core.Now()
	got := must.Get(service(f).Sessions(t.Context(), core.PurgeSessions{IDs: []core.SessionID{"a", "gone", "a"}, ArchivedBefore: &before, PurgeOptions: core.PurgeOptions{Compact: true}}))(t)
	want := core.PurgeReport{
		Sessions:  []core.SessionID{"a", "gone", "old"},
		Tables:    []core.PurgedTable{{Table: "sessions", Removed: 2}, {Table: "messages", Removed: 4}, {Table: "memories"}},
		Compacted: true, Notes: []string{"a note"},
	}
	compare.Equal(t, "report", want, got)
	compare.Equal(t, "removed, each once", []core.SessionID{"a", "gone", "old"}, f.removed)
	compare.Equal(t, "answers were to be removed after the sessions, and counted at the end", []bool{false, true}, f.answers)
}

// The report shows what is left.
func TestTheProofCounts(t *testing.T) {
	t.Parallel()
	got, err := service(&fake{left: 7}).Sessions(t.Context(), core.PurgeSessions{IDs: []core.SessionID{"a"}})
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
		_, err := service(tt.fake).Sessions(t.Context(), tt.in)
		if !errors.Is(err, tt.want) || len(tt.fake.removed)+len(tt.fake.canceled)+tt.fake.compact > 0 {
			t.Errorf("%s: got %v, removed %v, want %v and nothing removed", name, err, tt.fake.removed, tt.want)
		}
	}
}

func TestUser(t *testing.T) {
	t.Parallel()
	f := &fake{shared: []core.SessionID{"team"}}
	got, err := service(f).User(t.Context(), core.PurgeUser{Owner: "o", User: "u"})
	if err != nil || got.Tables[1] != (core.PurgedTable{Table: "messages", Removed: 2, Emptied: 3}) || got.Tables[2].Removed != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	if len(f.removed) != 1 || len(f.emptied) != 1 || len(f.users) != 1 || f.events != 3 { // one of them of the session that is gone

		t.Errorf("removed %v, emptied %v, users %v, %d events told", f.removed, f.emptied, f.users, f.events)
	}
	if strings.Contains(strings.Join(got.Notes, " "), "nothing was found") {
		t.Errorf("got the notes %q", got.Notes)
	}
	for _, in := range []core.PurgeUser{{Owner: "o"}, {User: "u"}} {
		compare.Error(t, fmt.Sprintf("%+v: want it refused: it would be everybody", in), core.ErrInvalid, compare.ErrorOf(service(f).User(t.Context(), in)))
	}
}

// With force, queued runs are canceled first; a run that does not end is a conflict, and
// nothing is removed.
func TestForce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{runs: []core.UnfinishedRun{{ID: "running", Leased: true}, {ID: "queued"}}}
		in := core.PurgeSessions{IDs: []core.SessionID{"a"}, PurgeOptions: core.PurgeOptions{Force: true}}
		begin := time.Now()
		_, err := service(f).Sessions(t.Context(), in)
		if !errors.Is(err, core.ErrConflict) || !strings.Contains(err.Error(), "running") || time.Since(begin) != 45*time.Second || len(f.removed) > 0 {
			t.Errorf("a run that does not end: %v after %s, removed %v", err, time.Since(begin), f.removed)
		}
		compare.Equal(t, "canceled", []core.RunID{"queued", "running"}, f.canceled)
		f.runs[0].Leased = false // its lease is past
		if _, err := service(f).Sessions(t.Context(), in); err != nil || len(f.removed) != 1 {
			t.Errorf("a run that nobody works on: %v, removed %v", err, f.removed)
		}
	})
}

// Data written while a user is purged is removed too, and a session that was forked meanwhile
// is checked again.
func TestUserWhoGoesOn(t *testing.T) {
	t.Parallel()
	f := &fake{shared: []core.SessionID{"team"}, comes: []core.SessionID{"new"}, stale: 2}
	got, err := service(f).User(t.Context(), core.PurgeUser{Owner: "o", User: "u", PurgeOptions: core.PurgeOptions{Force: true}})
	if err != nil || len(f.removed) != 2 || len(f.emptied) != 3 || f.unended != core.AllowUnleased {
		t.Errorf("removed %v, emptied %v with %v, error %v", f.removed, f.emptied, f.unended, err)
	}
	compare.Equal(t, "report", []core.SessionID{"own", "new"}, got.Sessions)
	f = &fake{shared: []core.SessionID{"team"}, stale: 100}
	if _, err := service(f).User(t.Context(), core.PurgeUser{Owner: "o", User: "u", PurgeOptions: core.PurgeOptions{Force: true}}); err != nil || len(f.emptied) > 10 || f.unended != core.AllowUnleased {
		t.Errorf("one that never ends: tried %d times with %v, error %v", len(f.emptied), f.unended, err)
	}
}

// A purge that fails in its middle says how far it came.
func TestCutOff(t *testing.T) {
	t.Parallel()
	f := &fake{breaks: "b"}
	_, err := service(f).Sessions(t.Context(), core.PurgeSessions{IDs: []core.SessionID{"a", "b", "c"}})
	if !errors.Is(err, core.ErrUnavailable) || !strings.Contains(err.Error(), "disk on fire. Before that 1 sessions were removed") {
		t.Errorf("got %v, want how far it came", err)
	}
	f = &fake{breaks: "a"}
	if _, err := service(f).Sessions(t.Context(), core.PurgeSessions{IDs: []core.SessionID{"a"}}); err == nil || err.Error() != "disk on fire" {
		t.Errorf("at its beginning: got %v", err)
	}
}

// What was removed is reported also if its bytes could not be taken out of the
// files, which can be done later.
func TestCompactionFails(t *testing.T) {
	t.Parallel()
	f := &fake{torn: errors.New("no room")}
	in := core.PurgeSessions{IDs: []core.SessionID{"a"}, PurgeOptions: core.PurgeOptions{Compact: true}}
	got, err := service(f).Sessions(t.Context(), in)
	if err != nil || got.Compacted || got.Tables[0].Removed != 1 || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "no room") {
		t.Errorf("got %+v, error %v", got, err)
	}
	f.torn, in.IDs = nil, nil
	if got, err = service(f).Sessions(t.Context(), in); err != nil || !got.Compacted || len(got.Sessions) != 0 || f.compact != 2 {
		t.Errorf("only the files: got %+v, error %v", got, err)
	}
}

// A removal is in the audit log, with its actor and its size, but without the names of what is
// gone; a dry run, and a purge that removed nothing, are not.
func TestAudit(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := service(f)
	must.Get(s.Sessions(t.Context(), core.PurgeSessions{Owner: "web", IDs: []core.SessionID{"a"}}))(t)
	must.Get(s.User(t.Context(), core.PurgeUser{Owner: "web", User: "alice"}))(t)
	must.Get(s.User(t.Context(), core.PurgeUser{Owner: "web", User: "alice", PurgeOptions: core.PurgeOptions{DryRun: true}}))(t)
	var told []string
	for _, e := range f.noted {
		told = append(told, strings.Join([]string{e.Actor, e.Action, e.Owner, e.Target}, " "))
		if text := fmt.Sprintf("%+v %s", e, e.Details); strings.Contains(text, "alice") || !strings.Contains(text, `"complete":true`) || !strings.Contains(text, `"removed":{`) {
			t.Errorf("got entry %s, want the numbers, and no user", text)
		}
	}
	want := []string{"cli sessions.purged web sessions: 1", "cli user.purged web user sha256:" + core.SecretHash("alice")[:12]}
	if got := strings.Join(told, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("audit log: got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	f = &fake{fails: errors.New("no database")}
	if _, err := service(f).Sessions(t.Context(), core.PurgeSessions{IDs: []core.SessionID{"a"}}); err == nil || len(f.noted) != 0 {
		t.Errorf("got %v and %d entries for a purge that did nothing, want an error and none", err, len(f.noted))
	}
}

// What is old goes without a question; what is gone or in use is passed by.
func TestExpired(t *testing.T) {
	t.Parallel()
	f := &fake{}
	n, err := service(f).Expired(t.Context(), []core.SessionID{"a", "busy", "gone", "b"}, false)
	if err != nil || n != 2 {
		t.Errorf("got %d, %v, want 2 sessions", n, err)
	}
	compare.Equal(t, "removed", []core.SessionID{"a", "gone", "b"}, f.removed)
	if f.events != 2 || len(f.answers) != 1 || f.answers[0] || f.compact != 0 {
		t.Errorf("got %d watchers told, answers %v, %d compactions; want 2, removed once, none", f.events, f.answers, f.compact)
	}
	if n, err := service(f).Expired(t.Context(), []core.SessionID{"gone"}, false); n != 0 || err != nil || len(f.answers) != 1 {
		t.Errorf("of sessions that are gone: %d, %v", n, err)
	}
}

func TestExpiredBreaks(t *testing.T) {
	t.Parallel()
	f := &fake{breaks: "b"}
	n, err := service(f).Expired(t.Context(), []core.SessionID{"a", "b", "c"}, false)
	if n != 1 || !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("got %d, %v, want one session and why there are not more", n, err)
	}
}

// What processes left behind is removed at the start, and later within 5 s; a session
// that goes with it is gone for those who watch it, and so are its kept answers.
func TestRecoversAbandonedSessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{abandoned: []core.SessionID{"import", "fork"}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- service(f).Run(ctx) }()
		synctest.Wait()
		if want := []core.SessionID{"import", "fork"}; !slices.Equal(f.recovered, want) || f.events != 1 || len(f.answers) != 1 {
			t.Errorf("recovered %v with %d events, and %d searches for answers; want %v, and one of each for the removed session", f.recovered, f.events, len(f.answers), want)
		}
		f.mu.Lock()
		f.fails = errors.New("the database is away")
		f.mu.Unlock()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		f.mu.Lock()
		f.fails, f.abandoned = nil, []core.SessionID{"purge"}
		f.mu.Unlock()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !slices.Contains(f.recovered, "purge") {
			t.Errorf("recovered %v, want what was left behind later, too", f.recovered)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
