package branches_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// How many sequences a normal run of the tests has, and what part of them
// PostgreSQL gets.
const (
	usual         = 3 // BOBBIN_BRANCHES_SEQUENCES
	postgresShare = 5
	longest       = 30 // steps
)

// Edit and regenerate before and after the
// cursor in random sequences: the invariants of package contextwindow hold, nothing is lost.
func TestBranches(t *testing.T) {
	t.Parallel()
	sequences := setting("BOBBIN_BRANCHES_SEQUENCES", usual)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := sequences
		if d.Gorm.Name() == "postgres" {
			n = max(1, n/postgresShare)
		}
		w := newWorld(t, d)
		w.sequence(10, seed.Fixed(1, 10)) // a run that comes to its last iteration, where results are text
		for i := range uint64(n) {
			w.sequence(i, seed.Rand(t, i))
			if w.violations > 10 {
				break
			}
		}
	})
}

func setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// sequence takes a new session through some steps and checks after each.
func (w *world) sequence(n uint64, r *rand.Rand) {
	w.t.Helper()
	w.rand = r
	w.trace = []string{"sequence " + strconv.FormatUint(n, 10)}
	names := []string{"window", "hybrid", "sliding", "manual"}
	made := must.Get(w.chat.CreateSession(w.t.Context(), tenant, core.Session{Agent: names[w.rand.IntN(len(names))], Title: "a talk"}))(w.t)
	w.talks, w.deadline = []*talk{newTalk(made.ID)}, 0
	violations := w.violations
	early := w.rand.IntN(12) // messages before anything else
	for i := range early + 10 + w.rand.IntN(longest-9) {
		name := "send"
		if i >= early {
			name = w.step()
		} else {
			w.mood()
			w.send(w.talks[0])
		}
		for _, k := range w.talks {
			w.check(k, name)
		}
		if w.violations > violations {
			return
		}
	}
}
