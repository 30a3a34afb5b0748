package repositories_test

import (
	"fmt"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
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
	w := must.Get(s.sessions.SummaryWork(t.Context(), ann(), id))(t)
	return w
}

// wantPrepared checks which message the prepared summary ends with; 0 = none.
func (s *store) wantPrepared(t *testing.T, id core.SessionID, through int64) {
	t.Helper()
	if got := s.work(t, id).Prepared; got.ThroughSeq != through || (got.Version == 0) != (through == 0) {
		t.Errorf("got %+v prepared, want one through %d", got, through)
	}
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
			must.Get(repositories.NewBranches(d.Gorm).Delete(t.Context(), ann(), id, m.ID))(t)
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
