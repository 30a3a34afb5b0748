package runs_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bobbin/app/core"
	"bobbin/tests/compare"
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
