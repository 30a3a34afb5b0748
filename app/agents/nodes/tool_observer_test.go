package nodes_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/tests/must"
)

// toolWatch writes down what became of tool calls.
type toolWatch struct {
	core.NoObserver

	mu   sync.Mutex
	told []string // guarded by mu
}

type watchedKey struct{}

func (w *toolWatch) Tool(ctx context.Context, name, callID string) (context.Context, func(outcome string)) {
	return context.WithValue(ctx, watchedKey{}, callID), func(outcome string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.told = append(w.told, callID+" "+name+" "+outcome)
	}
}

// all returns what was told so far, sorted.
func (w *toolWatch) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(slices.Values(w.told))
}

// The observer hears of every tool call once, with what became of it, and tools work
// with its context.
func TestObserverOfTools(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 8192).with(
			breaks("broken", "the disk is full"),
			tool{name: "panics", do: func(context.Context, tools.Call) (string, error) { panic("boom") }},
			says("large", strings.Repeat("x", 101)),
			tool{name: "late", do: func(ctx context.Context, _ tools.Call) (string, error) { <-ctx.Done(); return "", ctx.Err() }},
			tool{name: "order", once: true, do: func(context.Context, tools.Call) (string, error) { return "ordered", nil }},
			tool{name: "looks", do: func(ctx context.Context, c tools.Call) (string, error) {
				if ctx.Value(watchedKey{}) != c.ID {
					return "not the observer's context", nil
				}
				return "ok", nil
			}},
		)
		w.watch = &toolWatch{}
		w.limits.Output = 100
		s := w.asking(call("1", "broken"), call("2", "panics"), call("3", "large"), call("4", "late"), call("5", "looks"), call("6", "nothing"), call("7", "order"))
		must.Do(t, w.db.Runs.StartTools(t.Context(), s.Run.ID, s.Run.Attempt, []core.ToolExecution{{RunID: s.Run.ID, CallID: "7", Tool: "order"}}))
		w.mustUse(s)
		want := []string{"1 broken failed", "2 panics panicked", "3 large too_large", "4 late timeout", "5 looks ok", "6 nothing unknown", "7 order interrupted"}
		if diff := cmp.Diff(want, w.watch.all()); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		if got := w.results()[4]; got != "5 complete ok" {
			t.Errorf("got %q, want the tool called with the observer's context", got)
		}

		s = w.asking(call("8", "late"))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(core.ErrCanceled) })
		if _, err := w.use(ctx, s); err == nil {
			t.Error("a canceled run went on")
		}
		if got := w.watch.all(); got[len(got)-1] != "8 late canceled" {
			t.Errorf("told %q, want that the last one was canceled", got)
		}
	})
}
