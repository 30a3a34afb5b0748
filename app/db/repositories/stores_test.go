package repositories_test

import (
	"testing"

	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/coretest"
	"bobbin/tests/dbtest"
)

// The repositories do what the stores of core promise, like the store in memory.
func TestStores(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			empty := func(t *testing.T) coretest.Stores {
				t.Helper()
				s := open(database(t))
				return coretest.Stores{Sessions: s.sessions, Messages: s.messages, Branches: repositories.NewBranches(s.Gorm), Summaries: s.summaries, Runs: s.runs, Events: s.events}
			}
			coretest.TestStores(t, empty)
			t.Run("revisions", func(t *testing.T) { t.Parallel(); coretest.TestRevisions(t, empty) })
		})
	}
}
