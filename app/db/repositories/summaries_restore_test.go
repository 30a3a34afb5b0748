package repositories_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
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

// Undo creates a new version that repeats an earlier one, with its cursor; version 0 is no
// summary; either can be undone.
func TestRestoreSummary(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 4)
		log := s.log(t, id)
		s.summarize(t, id, log[1])
		s.summarize(t, id, log[5])
		before := s.get(t, id)

		session, events := s.restore(t, id, 1)
		s.wantSummary(t, id, 2, 3)
		if diff := cmp.Diff(s.get(t, id), session, sameJSON()); diff != "" {
			t.Errorf("session (-stored +returned):\n%s", diff)
		}
		if session.SummarizedCount != 2 || session.SummaryCount != 3 || session.PromptRevision != before.PromptRevision+1 || !strings.Contains(string(session.PromptState), "landed") {
			t.Errorf("got %+v, want the first version's count and the state given", session)
		}
		stored := s.allEvents(t, id)
		if diff := cmp.Diff(stored[len(stored)-1:], events, asRead()); diff != "" || decode[core.ContextData](t, events[0]).Version != 3 {
			t.Errorf("events, with version 3 (-stored +returned):\n%s", diff)
		}
		repeats, err := s.summaries.Get(t.Context(), ann(), id, 3)
		if err != nil || repeats.Trigger != core.TriggerRestore || repeats.Note != "repeats version 1" || repeats.Content != "summary through 2" {
			t.Errorf("got %+v and %v, want a version that repeats the first", repeats, err)
		}

		session, events = s.restore(t, id, 0)
		s.wantSummary(t, id, 0, 0)
		if session.SummaryThroughID != nil || session.SummarizedCount != 0 || decode[core.ContextData](t, events[0]).Version != 0 {
			t.Errorf("got %+v, want no summary", session)
		}
		s.restore(t, id, 2) // an undo is undone
		s.wantSummary(t, id, 6, 4)
	})
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

// An edit of the summary is undone, too, although it ends where the version before does.
func TestRestoreBeforeAnEdit(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 3)
		log := s.log(t, id)
		s.summarize(t, id, log[1])
		s.summarize(t, id, log[1])
		s.restore(t, id, 1)
		for version, want := range map[int]core.SummaryState{1: core.SummaryDropped, 2: core.SummaryUndone, 3: core.SummaryActive} {
			if got := s.summary(t, id, version).State; got != want {
				t.Errorf("version %d: got it %s, want %s", version, got, want)
			}
		}
	})
}

// Notes on a tool loop that the summary had passed are in use again.
func TestRestoreNotes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 4)
		log := s.log(t, id)
		s.summarize(t, id, log[1])
		_, _, err := s.sessions.ApplyContext(t.Context(), ann(), core.ContextChange{SessionID: id, Expect: s.get(t, id).PromptRevision, Summary: &core.Summary{
			Kind: core.SummaryRun, Content: "notes", FromID: log[3].ID, ThroughID: log[3].ID, FromSeq: 4, ThroughSeq: 4, TokenCount: 2,
		}})
		if err != nil {
			t.Fatal(err)
		}
		s.summarize(t, id, log[5])
		if got := s.summary(t, id, 2).State; got != core.SummaryDropped {
			t.Fatalf("got the notes %s, want them dropped", got)
		}
		session, _ := s.restore(t, id, 1)
		if got := s.summary(t, id, 2); got.State != core.SummaryActive || !strings.Contains(string(session.PromptState), string(got.ID)) || !strings.Contains(string(session.PromptState), "landed") {
			t.Errorf("got the notes %s and the state %s, want them in use", got.State, session.PromptState)
		}
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
		if _, err := branches.Delete(t.Context(), ann(), id, log[0].ID); err != nil {
			t.Fatal(err)
		}
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
	got, err := s.summaries.Get(t.Context(), ann(), id, version)
	if err != nil {
		t.Fatal(err)
	}
	return &got
}

// What was prepared extends a summary that is no longer in use: a restore drops it, and
// it was never a version of the conversation.
func TestRestoreDropsPrepared(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 4)
		log := s.log(t, id)
		prepare := func() {
			t.Helper()
			ahead := *s.summary(t, id, 1)
			ahead.ID, ahead.State, ahead.ThroughID, ahead.ThroughSeq = "", core.SummaryPrepared, log[5].ID, 6
			if _, _, err := s.sessions.ApplyContext(t.Context(), ann(), core.ContextChange{SessionID: id, Expect: s.get(t, id).PromptRevision, Summary: &ahead}); err != nil {
				t.Fatal(err)
			}
		}
		s.summarize(t, id, log[1])
		s.summarize(t, id, log[3])
		for _, tt := range []struct{ prepared, restored int }{{3, 1}, {5, 0}} { // the restore in between is version 4
			prepare()
			_, err := s.summaries.Restorable(t.Context(), ann(), id, tt.prepared)
			wantError(t, "prepared", err, core.ErrUnprocessable)
			s.restore(t, id, tt.restored)
			if got := s.summary(t, id, tt.prepared).State; got != core.SummaryUndone {
				t.Errorf("restore %d: got the prepared version %s, want it undone", tt.restored, got)
			}
			_, err = s.summaries.Restorable(t.Context(), ann(), id, tt.prepared)
			wantError(t, "undone", err, core.ErrUnprocessable)
		}
		if got, err := s.summaries.FirstCovering(t.Context(), ann(), id, 6); err != nil || got != 0 {
			t.Errorf("got version %d and %v, want none that was in use", got, err)
		}
	})
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
