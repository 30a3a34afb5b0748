package branches_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

// How many sequences a normal run of the tests has, and what part of them
// PostgreSQL gets.
const (
	usual         = 3 // make show-branches has 500
	postgresShare = 5
	longest       = 30 // steps
)

// Edit and regenerate before and after the
// cursor in random sequences: the invariants of package contextwindow hold, nothing is lost.
func TestShowBranches(t *testing.T) {
	t.Parallel()
	sequences, seed := setting("BOBBIN_BRANCHES_SEQUENCES", usual), setting("BOBBIN_BRANCHES_SEED", 1)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := sequences
		if d.Gorm.Name() == "postgres" {
			n = max(1, n/postgresShare)
		}
		f := newFigures()
		w := newWorld(t, d, f)
		for i := range n {
			w.sequence(uint64(seed + i))
			if f.violations > 10 {
				break
			}
		}
		w.countFallBacks()
		t.Logf("Branches at random (%s)%s", t.Name(), f)
	})
}

func setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// sequence takes a new session through some steps and checks after each.
func (w *world) sequence(seed uint64) {
	w.t.Helper()
	w.rand = rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // choices of a test
	w.trace = []string{"seed " + strconv.FormatUint(seed, 10)}
	names := []string{"window", "hybrid", "sliding", "manual"}
	made, err := w.chat.CreateSession(w.t.Context(), tenant, core.Session{Agent: names[w.rand.IntN(len(names))], Title: "a talk"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.talks, w.deadline = []*talk{newTalk(made.ID)}, 0
	w.figures.sequences++
	violations := w.figures.violations
	early := w.rand.IntN(12) // messages before anything else
	for i := range early + 10 + w.rand.IntN(longest-9) {
		name := "send"
		if i >= early {
			name = w.step()
		} else {
			before := w.session(w.talks[0].id)
			w.mood()
			w.send(w.talks[0])
			w.figures.step(name, before, w.session(w.talks[0].id))
		}
		for _, k := range w.talks {
			w.check(k, name)
		}
		if w.figures.violations > violations {
			return
		}
	}
}

// countFallBacks counts the versions that repeat an older one.
func (w *world) countFallBacks() {
	w.t.Helper()
	err := w.db.Gorm.WithContext(w.t.Context()).Raw("SELECT COUNT(*) FROM session_summaries WHERE note LIKE 'repeats%' OR trigger IN ('edit', 'after', 'regenerate', 'select', 'delete')").
		Scan(&w.figures.repeated).Error
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.db.Gorm.WithContext(w.t.Context()).Raw("SELECT COUNT(*) FROM session_summaries WHERE kind = 'run'").Scan(&w.figures.notes).Error
	if err != nil {
		w.t.Fatal(err)
	}
	w.figures.summaries -= min(w.figures.summaries, w.figures.repeated+w.figures.notes)
}
