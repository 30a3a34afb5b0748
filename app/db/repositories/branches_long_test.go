package repositories_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
)

// The time of a path change grows linearly with its length, even before the database has
// statistics of the table: each step up or down the tree uses an index.
func TestLongBranches(t *testing.T) {
	t.Parallel()
	const n = 1000
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		branches := repositories.NewBranches(d.Gorm)
		id := s.session(t).ID
		s.filled(t, id, n)
		log := s.log(t, id)
		s.summarize(t, id, log[n/2+1])
		must := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		seen := s.recorded(t, func() {
			s.edit(t, id, log[2].ID, "edited")
			_, _, err := branches.Select(t.Context(), ann(), id, log[2].ID)
			must(err)
			_, err = branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: id})
			must(err)
			_, err = branches.Delete(t.Context(), ann(), id, log[4].ID)
			must(err)
			s.again(t, id, log[n-1].ID)
		})
		walks := 0
		var settings []statement // of the transaction
		for _, q := range seen {
			switch {
			case strings.Contains(q.text, "FOR UPDATE"): // its first statement
				settings = nil
			case strings.Contains(q.text, "set_config"):
				settings = append(settings, q)
			}
			if !strings.Contains(q.text, "RECURSIVE") {
				continue
			}
			walks++
			plan := s.plan(t, q, settings...)
			if scans(plan) || !byTheTree.MatchString(plan) {
				t.Errorf("does not walk by an index:\n%s\n%s", q.text, plan)
			}
		}
		if walks < 4 {
			t.Errorf("got %d walks through the tree, want one a change at least", walks)
		}
		if got := len(s.log(t, id)); got != n-1 {
			t.Errorf("got a path of %d messages, want %d", got, n-1)
		}
	})
}

// byTheTree are the indexes that lead from a message to its parent and its children.
var byTheTree = regexp.MustCompile(`messages_pkey|messages_parent|sqlite_autoindex_messages_1`)

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
