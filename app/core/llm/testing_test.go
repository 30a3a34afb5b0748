package llm_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

func ask(text string) llm.Request {
	return llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: text}}}
}

func TestScriptedGivesAnswersInOrder(t *testing.T) {
	t.Parallel()
	calls := []core.ToolCall{{ID: "a", Name: "one", Arguments: `{"x":1}`}, {ID: "b", Name: "two", Arguments: "{}", Signature: "s"}}
	usage := &core.Usage{InputTokens: 10, OutputTokens: 2}
	model := llm.Scripted("hello",
		llm.Step{Reasoning: "hm", Text: []string{"a", "b"}, Usage: usage, Finish: core.FinishLength},
		llm.Call(calls...),
		func(req llm.Request) llm.Step { return llm.Say("you said: ", req.Messages[0].Content) },
	)
	want := []llm.Response{
		{Text: "hello", Finish: core.FinishStop},
		{Text: "ab", Reasoning: "hm", Usage: usage, Finish: core.FinishLength},
		{ToolCalls: calls, Finish: core.FinishToolCalls},
		{Text: "you said: hi", Finish: core.FinishStop},
	}
	for i, w := range want {
		got, err := llm.Collect(model.Stream(t.Context(), ask("hi")), nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		if diff := cmp.Diff(w, got); diff != "" {
			t.Errorf("answer %d (-want +got):\n%s", i, diff)
		}
	}
	if got := len(model.Requests()); got != 4 {
		t.Errorf("got %d requests, want 4", got)
	}
	if got := model.Remaining(); got != 0 {
		t.Errorf("got %d remaining answers, want 0", got)
	}
}

func TestScriptedFails(t *testing.T) {
	t.Parallel()
	plain := errors.New("boom")
	typed := &llm.Error{Kind: llm.KindRateLimit, Message: "slow down"}
	model := llm.Scripted(plain, typed, llm.Step{Text: []string{"par"}, Err: typed})

	_, err := llm.Collect(model.Stream(t.Context(), ask("1")), nil)
	if !llm.IsKind(err, llm.KindUnknown) || !errors.Is(err, plain) {
		t.Errorf("got %v, want a KindUnknown that wraps boom", err)
	}
	_, err = llm.Collect(model.Stream(t.Context(), ask("2")), nil)
	if llm.AsError(err) != typed {
		t.Errorf("got %v, want the typed error itself", err)
	}
	got, err := llm.Collect(model.Stream(t.Context(), ask("3")), nil)
	if llm.AsError(err) != typed || got.Text != "par" {
		t.Errorf("got %q, %v, want the partial text and the error", got.Text, err)
	}
}

func TestScriptedOutOfScript(t *testing.T) {
	t.Parallel()
	model := llm.Scripted()
	_, err := llm.Collect(model.Stream(t.Context(), ask("anybody?")), nil)
	if !llm.IsKind(err, llm.KindInvalid) || !strings.Contains(err.Error(), `request 1, but the script has 0 answers; the last message is user "anybody?"`) {
		t.Errorf("got %v, want an error that names the request", err)
	}
	model.Add("here")
	if got, err := llm.Collect(model.Stream(t.Context(), ask("now?")), nil); err != nil || got.Text != "here" {
		t.Errorf("after Add: got %q, %v, want here", got.Text, err)
	}
}

func TestScriptedPanicsOnNonsense(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("got no panic, want one for an answer of a wrong type")
		}
	}()
	llm.Scripted(42)
}

func TestScriptedRepeat(t *testing.T) {
	t.Parallel()
	model := llm.Scripted("first", llm.Step{Repeat: true, Text: []string{"again"}})
	var got []string
	for range 3 {
		res, err := llm.Collect(model.Stream(t.Context(), ask("x")), nil)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, res.Text)
	}
	if diff := cmp.Diff([]string{"first", "again", "again"}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestScriptedGateHoldsUntilOpened(t *testing.T) {
	t.Parallel()
	gate := llm.NewGate()
	model := llm.Scripted(llm.Step{Text: []string{"a", "b"}, Gate: gate, GateAfter: 1})
	go func() {
		<-gate.Reached()
		gate.Open()
	}()
	got, err := llm.Collect(model.Stream(t.Context(), ask("x")), nil)
	if err != nil || got.Text != "ab" {
		t.Errorf("got %q, %v, want ab", got.Text, err)
	}
}

func TestScriptedGateEndsWithContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("user pressed stop")
	for name, after := range map[string]int{"before the first delta": 0, "in between": 1, "before the end": 99} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gate := llm.NewGate()
			model := llm.Scripted(llm.Step{Text: []string{"a", "b"}, Gate: gate, GateAfter: after})
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				<-gate.Reached()
				cancel(cause)
			}()
			got, err := llm.Collect(model.Stream(ctx, ask("x")), nil)
			if !llm.IsKind(err, llm.KindCanceled) || !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want KindCanceled with the cause", err)
			}
			if want := "ab"[:min(after, 2)]; got.Text != want {
				t.Errorf("got text %q, want %q", got.Text, want)
			}
		})
	}
}

func TestScriptedStopsWhenTheCallerLeaves(t *testing.T) {
	t.Parallel()
	model := llm.Scripted(llm.Say("a", "b", "c"))
	for d, err := range model.Stream(t.Context(), ask("x")) {
		if err != nil || d.Text != "a" {
			t.Fatalf("got %q, %v, want a", d.Text, err)
		}
		break
	}
}

func TestScriptedConcurrently(t *testing.T) {
	t.Parallel()
	model := llm.Scripted(llm.Step{Repeat: true, Text: []string{"ok"}}).WithInfo(llm.Info{Name: "m", Window: 10})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got, err := llm.Collect(model.Stream(t.Context(), ask("x")), nil); err != nil || got.Text != "ok" {
				t.Errorf("got %q, %v, want ok", got.Text, err)
			}
		})
	}
	wg.Wait()
	if got := len(model.Requests()); got != 20 {
		t.Errorf("got %d requests, want 20", got)
	}
	if got := model.Info(); got.Name != "m" || got.Window != 10 {
		t.Errorf("got info %+v, want what was set", got)
	}
}
