package nodes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/llmtest"
)

// L2: a tool result of 100,000 tokens in the middle of a loop, on
// models with a window of 8K, 32K and 128K: every prompt fits, the question stays word
// for word, each call has its result, and the run comes to its answer. The notes on the
// older rounds come from the model while they can.
func TestHugeResultInALoop(t *testing.T) {
	t.Parallel()
	const rounds, huge = 14, 5
	for _, window := range []int{8_192, 32_768, 128_000} {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			t.Parallel()
			n := 0
			w := newWorld(t, window).with(tool{name: "read", do: func(context.Context, tools.Call) (string, error) {
				if n++; n == huge {
					return strings.Repeat("seven words of text in every line\n", 12_500), nil
				}
				return fmt.Sprintf("file %d: ", n) + strings.Repeat("text ", 300), nil
			}})
			w.profile.Loop.Enabled, w.profile.Loop.Threshold, w.profile.Loop.KeepRecent, w.profile.Loop.MaxContextTokens = true, 8, 3, 80_000
			w.profile.Agent.MaxIterations = rounds + 5
			w.writer.Add(llmtest.Step{Text: []string{"## Current state\nFiles were read; the fifth is huge."}, Repeat: true})
			for i := range rounds {
				w.model.Add(llmtest.Call(call(fmt.Sprint(i), "read")))
			}
			w.model.Add("It is in file 9.")
			s := w.turns(3, 100).begin("Where is it? Look everywhere.")
			for range rounds {
				s = w.mustUse(w.mustCall(s))
			}
			s = w.mustCall(s)
			if _, ok := s.Answer(); !ok || w.run.Status == core.RunFailed {
				t.Fatalf("got %s without an answer", w.run.Status)
			}
			for i, req := range w.model.Requests() {
				if size := w.size(req); size+req.MaxOutputTokens > window {
					t.Errorf("request %d has %d tokens and asks for %d, the window is %d", i+1, size, req.MaxOutputTokens, window)
				}
				wantLoop(t, i, req)
			}
			covered := 0
			for _, n := range w.Summaries {
				if n.Kind == core.SummaryRun {
					covered = n.MessagesCovered
				}
			}
			if covered < 2*5 {
				t.Errorf("notes stand for %d messages, want the rounds before the last of a compaction", covered)
			}
		})
	}
}

// wantLoop wants a prompt with the question as it was asked, and calls with results.
func wantLoop(t *testing.T, i int, req llm.Request) {
	t.Helper()
	asked, open := false, 0
	for _, m := range req.Messages {
		asked = asked || m.Role == core.RoleUser && m.Content == "Where is it? Look everywhere."
		if m.Role == core.RoleTool {
			open--
		} else if open != 0 {
			t.Errorf("request %d: a call without its result", i+1)
		}
		open += len(m.ToolCalls)
	}
	if !asked || open != 0 {
		t.Errorf("request %d: the question is there %v, %d calls are open", i+1, asked, open)
	}
}
