package runs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bobbin/app/core"
	"bobbin/app/runs"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
)

// watch writes down what became of executions.
type watch struct {
	core.NoObserver
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

func (w *watch) Count(counter core.Counter, n int, labels ...string) {
	if n > 0 && !slices.Contains(labels, "renewed") {
		w.note("%s %s %d", counter, strings.Join(labels, " "), n)
	}
}

func (w *watch) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, fmt.Sprintf(format, args...))
}

func (w *watch) want(t *testing.T, want ...string) {
	t.Helper()
	w.wantAs(t, want)
}

// wantInAnyOrder is for what the heartbeat and the runs that it starts report at the same time.
func (w *watch) wantInAnyOrder(t *testing.T, want ...string) {
	t.Helper()
	w.wantAs(t, want, cmpopts.SortSlices(func(a, b string) bool { return a < b }))
}

func (w *watch) wantAs(t *testing.T, want []string, opts ...cmp.Option) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	compare.Equal(t, "told", want, w.told, opts...)
}

// The observer hears of every execution, and of its end before the session's next
// one begins; the engine works with its context.
func TestObserver(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{RunTime: time.Minute}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
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

// An execution that is handed back or lost is reported as such: the run has not ended.
func TestObserverOfHandedBack(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{Grace: time.Second}, hang).run(t)
		p.accept(t, "hang")
		synctest.Wait()
		p.stop()
		p.watch.want(t, "hang began", "hang handed_back ")
	})
}

func TestObserverOfLost(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, func(context.Context, *runs.Recorder, core.Run) error {
			return fmt.Errorf("write: %w", core.ErrStale)
		}).run(t)
		p.accept(t, "stale")
		synctest.Wait()
		p.watch.want(t, "stale began", "fenced_writes_total run 1", "stale lost ")
	})
}

// The observer receives take-overs, lost leases, and work that only the sweep has found.
func TestObserverOfLeases(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		p := newProcess(t, db, "w", runs.Limits{}, hang).run(t)
		dead := newProcess(t, db, "other", runs.Limits{}, answer)
		dead.dead = true
		dead.accept(t, "lapses")
		<-time.After(35 * time.Second)
		synctest.Wait()
		p.watch.wantInAnyOrder(t, "takeovers_total run 1", "sweep_finds_total lapsed_run 1", "lapses began")
		takeOver(t, db, "w", "third")
		<-time.After(10 * time.Second)
		synctest.Wait()
		p.watch.wantInAnyOrder(t, "takeovers_total run 1", "sweep_finds_total lapsed_run 1", "lapses began", "lease_renewals_total run lost 1", "lapses lost ")
	})
}
