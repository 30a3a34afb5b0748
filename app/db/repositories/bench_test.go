package repositories_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

// BenchmarkTurn is what a plain turn costs the database: Accept, Write with the
// answer and the end, and the question for the messages after the cursor. The
// session grows with every turn; the cost must not.
//
//	go test ./app/db/repositories -run '^$' -bench Turn -benchtime 2000x
func BenchmarkTurn(b *testing.B) {
	for name, openDB := range map[string]func(testing.TB) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		b.Run(name, func(b *testing.B) {
			s := open(openDB(b))
			session, err := s.sessions.Create(b.Context(), core.Session{Owner: "ann"})
			if err != nil {
				b.Fatal(err)
			}
			var last core.MessageID
			for b.Loop() {
				if last, err = s.benchTurn(b, session.ID, last); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(s.Statements())/float64(b.N), "statements/op")
		})
	}
}

func (s *store) benchTurn(b *testing.B, session core.SessionID, after core.MessageID) (core.MessageID, error) {
	accepted, err := s.runs.Accept(b.Context(), ann(), ask(session, "question"))
	if err != nil {
		return "", err
	}
	if _, err := s.messages.GetMessagesAfter(b.Context(), ann(), session, after); err != nil {
		return "", err
	}
	m := answer("answer")
	_, err = s.runs.Write(b.Context(), core.RunWrite{
		RunID: accepted.Run.ID, SessionID: session, Attempt: 1, Messages: []core.Message{m},
		ModelCalls: []core.ModelCall{{Purpose: core.PurposeAnswer, Model: "m"}},
		End:        &core.RunEnd{Status: core.RunSucceeded, AnswerID: m.ID},
	})
	return m.ID, err
}
