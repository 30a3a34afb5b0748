package repositories_test

import (
	"fmt"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
)

// ahead prepares a summary of the path up to the message.
func (s *store) ahead(t *testing.T, id core.SessionID, through core.Message) core.Session {
	t.Helper()
	session := s.get(t, id)
	session, _, err := s.sessions.ApplyContext(t.Context(), ann(), core.ContextChange{
		SessionID: id, Expect: session.PromptRevision, PromptState: []byte(`{"masked_through":9}`),
		Summary: &core.Summary{
			State: core.SummaryPrepared, Content: fmt.Sprintf("summary through %d", through.Seq), ThroughID: through.ID, ThroughSeq: through.Seq,
			FromSeq: 1, MessagesCovered: int(through.Seq), TokenCount: 3,
		},
	})
	if err != nil {
		t.Fatalf("prepare through %d: %v", through.Seq, err)
	}
	return session
}

// work returns what goes on with the session's summaries.
func (s *store) work(t *testing.T, id core.SessionID) core.SummaryWork {
	t.Helper()
	w, err := s.sessions.SummaryWork(t.Context(), ann(), id)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// wantPrepared checks which message the prepared summary ends with; 0 = none.
func (s *store) wantPrepared(t *testing.T, id core.SessionID, through int64) {
	t.Helper()
	if got := s.work(t, id).Prepared; got.ThroughSeq != through || (got.Version == 0) != (through == 0) {
		t.Errorf("got %+v prepared, want one through %d", got, through)
	}
}

// W5: a prepared summary changes only the list of versions; a compare-and-set activates it,
// once.
func TestPreparedSummary(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 5)
		log := s.log(t, id)
		s.summarize(t, id, log[1])
		before := s.get(t, id)
		s.wantPrepared(t, id, 0)

		got := s.ahead(t, id, log[3])
		if got.PromptRevision != before.PromptRevision || got.SummaryVersion != 1 || string(got.PromptState) != string(before.PromptState) || got.SummaryCount != 1 {
			t.Errorf("got session %+v, want it as it was: %+v", got, before)
		}
		s.ahead(t, id, log[5]) // in the place of the one before
		s.turns(t, id, 1)      // what is appended does not matter
		want := core.SummaryVersion{ID: s.work(t, id).Prepared.ID, Version: 3, State: core.SummaryPrepared, ThroughID: log[5].ID, ThroughSeq: 6, Tokens: 3, Messages: 6}
		if got := s.work(t, id).Prepared; got != want || got.ID == "" {
			t.Errorf("got %+v, want %+v", s.work(t, id).Prepared, want)
		}
		s.wantSummary(t, id, 2, 1)

		use := core.ContextChange{
			SessionID: id, Expect: before.PromptRevision, PromptState: []byte(`{"summary_cut":1}`), Activate: new(3),
			Events: []core.Event{core.NewEvent(id, "", core.EventContextCompleted, core.ContextData{TokensBefore: 9})},
		}
		for name, wrong := range map[string]func(*core.ContextChange){
			"one that was replaced": func(c *core.ContextChange) { c.Activate = new(2) },
			"one that is in use":    func(c *core.ContextChange) { c.Activate = new(1) },
			"an old revision":       func(c *core.ContextChange) { c.Expect-- },
		} {
			c := use
			wrong(&c)
			_, _, err := s.sessions.ApplyContext(t.Context(), ann(), c)
			wantError(t, name, err, core.ErrStale)
		}
		session, events, err := s.sessions.ApplyContext(t.Context(), ann(), use)
		if err != nil {
			t.Fatal(err)
		}
		s.wantSummary(t, id, 6, 3)
		s.wantPrepared(t, id, 0)
		if session.SummaryCount != 2 || session.SummarizedCount != 6 || session.SummaryTokens != 3 || string(session.PromptState) != `{"summary_cut":1}` || session.PromptRevision != before.PromptRevision+1 {
			t.Errorf("got session %+v, want the third version in use", session)
		}
		if v := decode[core.ContextData](t, events[0]).Version; v != 3 {
			t.Errorf("context.completed: got version %d, want 3", v)
		}
		third, err := s.summaries.Get(t.Context(), ann(), id, 3)
		if err != nil || third.State != core.SummaryActive || third.ActivatedAt == nil || !third.ActivatedAt.Equal(*session.LastSummarizedAt) || !third.ActivatedAt.After(third.CreatedAt) {
			t.Errorf("got %+v, %v, want it in use since %v", third, err, session.LastSummarizedAt)
		}
		second, err := s.summaries.Get(t.Context(), ann(), id, 2)
		if err != nil || second.State != core.SummaryDropped || second.ActivatedAt != nil {
			t.Errorf("got %+v, %v, want it dropped and never in use", second, err)
		}
		_, _, err = s.sessions.ApplyContext(t.Context(), ann(), use)
		wantError(t, "twice", err, core.ErrStale)
	})
}

// A change of what a prepared summary extends, or of the path that it ends on, drops it; it
// is never restored, as it was never active (W5).
func TestPreparedSummaryIsDropped(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		branches := repositories.NewBranches(d.Gorm)
		for _, tt := range []struct {
			name    string
			do      func(t *testing.T, id core.SessionID, log []core.Message)
			stays   bool
			through int64 // of the summary in use
		}{
			{"a message is appended", func(t *testing.T, id core.SessionID, _ []core.Message) { s.turns(t, id, 1) }, true, 2},
			{"an edit after it", func(t *testing.T, id core.SessionID, log []core.Message) { s.edit(t, id, log[6].ID, "x") }, true, 2},
			{"an edit in it", func(t *testing.T, id core.SessionID, log []core.Message) { s.edit(t, id, log[4].ID, "x") }, false, 2},
			{"an edit of what it extends", func(t *testing.T, id core.SessionID, log []core.Message) { s.edit(t, id, log[0].ID, "x") }, false, 0},
			{"a new answer in it", func(t *testing.T, id core.SessionID, log []core.Message) { s.again(t, id, log[5].ID) }, false, 2},
			{"a new answer after it", func(t *testing.T, id core.SessionID, log []core.Message) { s.again(t, id, log[7].ID) }, true, 2},
			{"another summary", func(t *testing.T, id core.SessionID, log []core.Message) { s.summarize(t, id, log[3]) }, false, 4},
			{"a deletion after it", func(t *testing.T, id core.SessionID, log []core.Message) {
				if _, err := branches.Delete(t.Context(), ann(), id, log[7].ID); err != nil {
					t.Error(err)
				}
			}, true, 2},
			{"an edit, and back", func(t *testing.T, id core.SessionID, log []core.Message) {
				s.edit(t, id, log[4].ID, "x")
				if _, _, err := branches.Select(t.Context(), ann(), id, log[9].ID); err != nil {
					t.Error(err)
				}
			}, false, 2},
		} {
			id := s.session(t).ID
			s.turns(t, id, 5)
			log := s.log(t, id)
			s.summarize(t, id, log[1])
			s.ahead(t, id, log[5])
			tt.do(t, id, log)
			want := int64(0)
			if tt.stays {
				want = 6
			}
			if got := s.work(t, id).Prepared.ThroughSeq; got != want {
				t.Errorf("%s: prepared through %d, want %d", tt.name, got, want)
			}
			if got := s.get(t, id); got.SummaryThroughSeq != tt.through {
				t.Errorf("%s: the summary in use ends with %d, want %d", tt.name, got.SummaryThroughSeq, tt.through)
			}
		}
	})
}

// A prepared summary of a session without one: the first version is not in use.
func TestPreparedFirstSummary(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		branches := repositories.NewBranches(d.Gorm)
		id := s.session(t).ID
		s.turns(t, id, 4)
		log := s.log(t, id)
		s.ahead(t, id, log[3])
		s.edit(t, id, log[6].ID, "after it")
		s.wantPrepared(t, id, 4)
		s.wantSummary(t, id, 0, 0)
		fork, err := branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: id})
		if err != nil || fork.SummaryVersion != 0 || s.work(t, fork.ID).Prepared.Version != 0 {
			t.Errorf("fork: got version %d, %v, want none", fork.SummaryVersion, err)
		}
		s.edit(t, id, log[2].ID, "in it")
		s.wantPrepared(t, id, 0)
		s.wantSummary(t, id, 0, 0)
	})
}

// A deletion also erases prepared summaries of the message.
func TestDeleteErasesPreparedSummaries(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 1)
		log := s.confess(t, id)
		s.turns(t, id, 1)
		s.ahead(t, id, log[5]) // dropped by the next one
		s.ahead(t, id, log[5])
		s.exec(t, "UPDATE session_summaries SET content = ? WHERE session_id = ?", "told "+secret, id)
		for _, m := range log[2:6] {
			if _, err := repositories.NewBranches(d.Gorm).Delete(t.Context(), ann(), id, m.ID); err != nil {
				t.Fatal(err)
			}
		}
		if left := s.remains(t); len(left) > 0 {
			t.Errorf("the secret is still in %v", left)
		}
		s.wantPrepared(t, id, 0)
		if n := s.count(t, "SELECT COUNT(*) FROM session_summaries WHERE state = 'erased'"); n != 2 {
			t.Errorf("got %d versions erased, want both", n)
		}
	})
}
