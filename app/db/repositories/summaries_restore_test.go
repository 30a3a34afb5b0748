package repositories_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// restore makes a version the active one again.
func (s *store) restore(t *testing.T, id core.SessionID, version int) (core.Session, []core.Event) {
	t.Helper()
	session, events, err := s.sessions.RestoreSummary(t.Context(), ann(), core.SummaryRestore{
		SessionID: id, Expect: s.get(t, id).PromptRevision, Version: version, PromptState: []byte(`{"landed":{"tokens":5,"seq":8,"window":100}}`),
		Events: []core.Event{core.NewEvent(id, "", core.EventContextCompleted, core.ContextData{Trigger: core.TriggerRestore})},
	})
	if err != nil {
		t.Fatalf("restore version %d: %v", version, err)
	}
	return session, events
}

// Undone versions are not restored when the path changes; others are.
func TestRestoredStays(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		branches := repositories.NewBranches(d.Gorm)
		id := s.session(t).ID
		s.turns(t, id, 5)
		log := s.log(t, id)
		s.summarize(t, id, log[1])
		s.summarize(t, id, log[5])
		s.restore(t, id, 1)
		s.edit(t, id, log[8].ID, "behind all summaries")
		s.wantSummary(t, id, 2, 3)
		s.restore(t, id, 0)
		edited := s.edit(t, id, log[8].ID, "once more")
		s.wantSummary(t, id, 0, 0)
		s.restore(t, id, 2)
		s.wantSummary(t, id, 6, 4)
		if _, _, err := branches.Select(t.Context(), ann(), id, log[8].ID); err != nil {
			t.Fatal(err)
		}
		s.wantSummary(t, id, 6, 4)

		// A restore does not undo a version of another branch.
		s.summarize(t, id, log[9]) // version 5
		if _, _, err := branches.Select(t.Context(), ann(), id, edited.Run.UserMessageID); err != nil {
			t.Fatal(err)
		}
		s.wantSummary(t, id, 6, 6)
		s.restore(t, id, 0)
		if _, _, err := branches.Select(t.Context(), ann(), id, log[9].ID); err != nil {
			t.Fatal(err)
		}
		s.wantSummary(t, id, 10, 7)
	})
}

// A version that cannot be restored is refused with the reason, and changes nothing.
func TestRestoreRefused(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		branches := repositories.NewBranches(d.Gorm)
		id := s.session(t).ID
		s.turns(t, id, 4)
		log := s.log(t, id)
		s.summarize(t, id, log[1])
		s.summarize(t, id, log[7])            // 2
		s.edit(t, id, log[6].ID, "elsewhere") // 3 repeats 1
		s.summarize(t, id, s.log(t, id)[7])   // 4
		run := *s.summary(t, id, 4)           // 5
		run.Kind, run.ID, run.State = core.SummaryRun, "", ""
		if _, _, err := s.sessions.ApplyContext(t.Context(), ann(), core.ContextChange{SessionID: id, Expect: s.get(t, id).PromptRevision, Summary: &run}); err != nil {
			t.Fatal(err)
		}
		restore := func(version int, tenant core.Tenant, behind int) error {
			_, _, err := s.sessions.RestoreSummary(t.Context(), tenant, core.SummaryRestore{SessionID: id, Expect: s.get(t, id).PromptRevision - behind, Version: version, PromptState: []byte(`{}`)})
			return err
		}
		before := s.get(t, id)
		for name, tt := range map[string]struct {
			version int
			kind    error
			says    string
		}{
			"another branch": {2, core.ErrUnprocessable, "on another branch"},
			"of one run":     {5, core.ErrUnprocessable, "one run's tool calls"},
			"unknown":        {9, core.ErrNotFound, "version 9"},
		} {
			err := restore(tt.version, ann(), 0)
			wantError(t, name, err, tt.kind)
			_, asked := s.summaries.Restorable(t.Context(), ann(), id, tt.version)
			wantError(t, name, asked, tt.kind)
			for _, err := range []error{err, asked} {
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("%s: got %v, want it to say %q", name, err, tt.says)
				}
			}
		}
		wantError(t, "stale", restore(1, ann(), 1), core.ErrStale)
		wantError(t, "another owner", restore(1, bob(), 0), core.ErrNotFound)
		if diff := cmp.Diff(before, s.get(t, id), sameJSON()); diff != "" {
			t.Errorf("the session has changed (-before +after):\n%s", diff)
		}
		if s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE state = 'undone'") != 0 {
			t.Error("a version was taken back by a restore that was refused")
		}
		must.Get(branches.Delete(t.Context(), ann(), id, log[0].ID))(t)
		err := restore(4, ann(), 0)
		wantError(t, "erased", err, core.ErrUnprocessable)
		if err == nil || !strings.Contains(err.Error(), "was deleted") {
			t.Errorf("erased: got %v", err)
		}
	})
}

// summary returns a version.
func (s *store) summary(t *testing.T, id core.SessionID, version int) *core.Summary {
	t.Helper()
	got := must.Get(s.summaries.Get(t.Context(), ann(), id, version))(t)
	return &got
}

// The version before, and the first one that covered a message, on the present path.
func TestFindVersions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 4)
		log := s.log(t, id)
		s.summarize(t, id, log[1])
		s.summarize(t, id, log[5])
		s.restore(t, id, 1)
		for version, want := range map[int]int{4: 3, 3: 2, 2: 1} {
			if got, err := s.summaries.Before(t.Context(), ann(), id, version); err != nil || got.Version != want {
				t.Errorf("before version %d: got version %d and %v, want %d", version, got.Version, err, want)
			}
		}
		_, err := s.summaries.Before(t.Context(), ann(), id, 1)
		wantError(t, "before the first", err, core.ErrNotFound)
		_, err = s.summaries.Before(t.Context(), bob(), id, 3)
		wantError(t, "another owner's", err, core.ErrNotFound)
		for seq, want := range map[int64]int{1: 1, 2: 1, 3: 2, 6: 2, 7: 0} {
			if got, err := s.summaries.FirstCovering(t.Context(), ann(), id, seq); err != nil || got != want {
				t.Errorf("message %d: got version %d and %v, want %d", seq, got, err, want)
			}
		}
		s.edit(t, id, log[4].ID, "elsewhere")
		if got, err := s.summaries.FirstCovering(t.Context(), ann(), id, 3); err != nil || got != 0 {
			t.Errorf("on another path: got version %d and %v, want none", got, err)
		}
		_, err = s.summaries.FirstCovering(t.Context(), bob(), id, 1)
		wantError(t, "another owner's", err, core.ErrNotFound)
	})
}
