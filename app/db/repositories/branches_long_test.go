package repositories_test

import (
	"fmt"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/dbtest"
	"bobbin/app/db/repositories"
)

// A change of the path takes time that grows with its length, and not faster: also
// where the database knows nothing of the table yet.
func TestLongBranches(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		branches := repositories.NewBranches(d.Gorm)
		id := s.session(t).ID
		n := 4000
		if d.Gorm.Name() == "sqlite" { // inside this process, and slow under the race detector
			n = 1000
		}
		s.filled(t, id, n)
		log := s.log(t, id)
		s.summarize(t, id, log[n/2+1])
		for _, step := range []struct {
			name string
			do   func() error
		}{
			{"edit", func() error { s.edit(t, id, log[2].ID, "edited"); return nil }},
			{"select", func() error { _, _, err := branches.Select(t.Context(), ann(), id, log[2].ID); return err }},
			{"fork", func() error { _, err := branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: id}); return err }},
			{"delete", func() error { _, err := branches.Delete(t.Context(), ann(), id, log[4].ID); return err }},
			{"regenerate", func() error { s.again(t, id, log[n-1].ID); return nil }},
		} {
			began := time.Now()
			if err := step.do(); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			took := time.Since(began)
			t.Logf("%s among %d messages: %s", step.name, n, took.Round(time.Millisecond))
			if took > tooLong && step.name != "fork" { // which also makes the copies searchable
				t.Errorf("%s among %d messages took %s, want less than %s", step.name, n, took, tooLong)
			}
		}
		if got := len(s.log(t, id)); got != n-1 {
			t.Errorf("got a path of %d messages, want %d", got, n-1)
		}
	})
}

// tooLong is far more than it takes, and less than a walk that reads the whole table
// at each step.
const tooLong = 5 * time.Second

// filled imports messages, questions and answers.
func (s *store) filled(t *testing.T, id core.SessionID, n int) {
	t.Helper()
	list := make([]core.Message, 0, n)
	for i := range n {
		role := []core.Role{core.RoleUser, core.RoleAssistant}[i%2]
		list = append(list, core.Message{
			ID: core.NewID[core.MessageID](), Role: role, Content: fmt.Sprintf("message %d", i), Source: core.SourceAPI, TokenCount: 10,
		})
	}
	if _, err := s.messages.Append(t.Context(), ann(), core.AppendMessages{SessionID: id, Messages: list, Import: true}); err != nil {
		t.Fatal(err)
	}
}
