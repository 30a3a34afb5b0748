package runs_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/runs"
	"bobbin/app/runs/runstest"
)

// watch writes down what became of executions.
type watch struct {
	mu   sync.Mutex
	told []string // guarded by mu
}

type watchedKey struct{}

func (w *watch) Run(ctx context.Context, run core.Run) (context.Context, func(status, code string)) {
	w.note("%s began", run.Input.Content)
	return context.WithValue(ctx, watchedKey{}, run.ID), func(status, code string) {
		w.note("%s %s %s", run.Input.Content, status, code)
	}
}

func (w *watch) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, fmt.Sprintf(format, args...))
}

func (w *watch) want(t *testing.T, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff(want, w.told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// The observer hears of every execution, and of its end before the session's next
// one begins; the engine works with its context.
func TestObserver(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, runstest.New(), "w", runs.Limits{RunTime: time.Minute}, func(ctx context.Context, j *runs.Journal, run core.Run) error {
			if ctx.Value(watchedKey{}) != run.ID {
				return errors.New("not the observer's context")
			}
			switch run.Input.Content {
			case "fail":
				return core.Errorf(core.ErrContextFloor, "too long")
			case "hang":
				return hang(ctx, j, run)
			}
			return answer(ctx, j, run)
		}).run(t)
		p.accept(t, "one")
		p.accept(t, "fail")
		canceled := p.accept(t, "hang")
		p.accept(t, "two")
		synctest.Wait()
		if !p.service.Cancel(canceled.ID) {
			t.Error("the run that hangs was not found")
		}
		synctest.Wait()
		p.accept(t, "hang") // until its time is over
		<-time.After(2 * time.Minute)
		synctest.Wait()
		p.watch.want(t, "one began", "one succeeded ", "fail began", "fail failed context_floor", "hang began", "hang canceled ",
			"two began", "two succeeded ", "hang began", "hang failed run_timeout")
	})
}

// An execution that is handed back, or lost, is told as that: the run has not ended.
func TestObserverOfHandedBack(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, runstest.New(), "w", runs.Limits{Grace: time.Second}, hang).run(t)
		p.accept(t, "hang")
		synctest.Wait()
		p.stop()
		p.watch.want(t, "hang began", "hang handed_back ")
	})
}

func TestObserverOfLost(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, runstest.New(), "w", runs.Limits{}, func(context.Context, *runs.Journal, core.Run) error {
			return fmt.Errorf("write: %w", core.ErrStale)
		}).run(t)
		p.accept(t, "stale")
		synctest.Wait()
		p.watch.want(t, "stale began", "stale lost ")
	})
}
