package integration_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/coretest"
)

// stuck is a tool whose first call hangs until it is broken off.
type stuck struct {
	name       string
	idempotent bool
	calls      *atomic.Int32
}

func (s stuck) Spec() llm.ToolSpec {
	return llm.ToolSpec{Name: s.name, Description: "hangs once", Parameters: []byte(`{"type":"object","properties":{}}`)}
}
func (s stuck) Idempotent() bool { return s.idempotent }
func (s stuck) Call(ctx context.Context, _ tools.Call) (string, error) {
	if s.calls.Add(1) > 1 {
		return s.name + " again", nil
	}
	<-ctx.Done()
	return "", ctx.Err()
}

// A process stops in the middle of three tool calls, longer than the grace period: what
// had ended is kept, what may be repeated is repeated, and what may not is not, whoever
// goes on with the run (the message log is the checkpoint).
func TestStopInsideTools(t *testing.T) {
	for name, restart := range map[string]string{"restart": "w", "another process": "other"} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				var reads, pays atomic.Int32
				model := llm.Scripted(llm.Call(
					core.ToolCall{ID: "1", Name: "read", Arguments: "{}"}, core.ToolCall{ID: "2", Name: "pay", Arguments: "{}"}, core.ToolCall{ID: "3", Name: "fire", Arguments: "{}"},
				), "done")
				settings := newSettings(8192, model, stuck{"read", true, &reads}, stuck{"pay", false, &pays}, fire{})
				db := coretest.New()
				h := newHouse(t, db, "w", settings)
				run := h.send("go", "")
				synctest.Wait()
				h.stop()
				h.want(run, core.RunRunning, "")
				next := newHouse(t, db, restart, settings)
				<-time.After(time.Minute)
				got := next.want(run, core.RunSucceeded, "")
				if got.Attempt != 2 || reads.Load() != 2 || pays.Load() != 1 {
					t.Errorf("got attempt %d, %d reads and %d payments, want 2, 2 and 1", got.Attempt, reads.Load(), pays.Load())
				}
				want := []string{"user go", "assistant ", "tool fired", "tool read again", "tool error: the call was ", "assistant done"}
				if diff := cmp.Diff(want, h.log()); diff != "" {
					t.Errorf("log (-want +got):\n%s", diff)
				}
			})
		})
	}
}
