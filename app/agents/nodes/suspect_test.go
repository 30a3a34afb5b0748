package nodes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
)

// unclear is a refusal that does not say what is wrong.
func unclear(words string) *llm.Error {
	return &llm.Error{Kind: llm.KindInvalid, Unclear: true, Provider: "scripted", Status: 400, Message: words}
}

// A request that is refused for no clear reason is tried again with a shorter prompt
// if it was large for the model. If that is accepted, the prompt was too long.
func TestUnclearRefusalOfALongPrompt(t *testing.T) {
	t.Parallel()
	for _, refusals := range []int{1, 2} {
		t.Run(fmt.Sprint(refusals), func(t *testing.T) {
			t.Parallel()
			script := []any{llmtest.Fail(unclear("Bad \x1b[31mRequest")), llmtest.Fail(unclear("Bad Request"))}[:refusals]
			w := newWorld(t, 32_000, append(script, "fits now")...).turns(60, 120)
			before := w.Session
			w.mustCall(w.begin("go"))
			requests := w.model.Requests()
			if len(requests) != refusals+1 || w.last().Content != "fits now" {
				t.Fatalf("got %d requests and the answer %q, want the answer to the last of %d", len(requests), w.last().Content, refusals+1)
			}
			first, last := w.size(requests[0]), w.size(requests[refusals])
			if last > first/2 {
				t.Errorf("got a prompt of %d tokens after one of %d was refused, want at most half", last, first)
			}
			if w.Session.SummaryCount != 0 || string(w.Session.PromptState) != string(before.PromptState) {
				t.Errorf("got %d summaries and the state %s, want nothing kept of a try", w.Session.SummaryCount, w.Session.PromptState)
			}
			if got := w.learned.Window("scripted"); got < 1024 || got > first {
				t.Errorf("got the window %d for the model, want one below the refused prompt of %d", got, first)
			}
			events := w.feed.All(core.EventContextWarning)
			if len(events) != refusals {
				t.Fatalf("got %d warnings, want %d", len(events), refusals)
			}
			if d := coretest.Data[core.ContextData](events[0]); !strings.Contains(d.Reason, `for an unclear reason ("Bad [31mRequest")`) {
				t.Errorf("got the warning %q, want the provider's words without control characters", d.Reason)
			}
			if r := string(w.run.Context); !strings.Contains(r, `"overflows":1`) || !strings.Contains(r, "scripted refused a prompt of ") {
				t.Errorf("got the report %s, want the refusal in it", r)
			}
		})
	}
}

// If shorter prompts are refused as well, the refusal is what it was: the run ends
// with it, and nothing was changed or learned.
func TestUnclearRefusalThatIsNotLength(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		system string
		want   int // requests
	}{"shorter ones are refused": {"You are a tester.", 3}, "there is no shorter one": {strings.Repeat("rule ", 12_000), 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 32_000, llmtest.Fail(unclear("the first")), llmtest.Fail(unclear("another")), llmtest.Fail(unclear("another"))).turns(40, 120)
			w.profile.SystemPrompt = c.system
			_, err := w.call(t.Context(), w.begin("go"))
			if e := llm.AsError(err); e == nil || e.Kind != llm.KindInvalid || e.Message != "the first" {
				t.Errorf("got %v, want the first refusal", err)
			}
			if got := len(w.model.Requests()); got != c.want {
				t.Errorf("got %d requests, want %d", got, c.want)
			}
			if w.Session.SummaryCount != 0 || len(w.Session.PromptState) > 0 || w.learned.Window("scripted") != 0 || len(w.learned.tightened) > 0 {
				t.Errorf("got %d summaries, state %s, window %d, %d estimates tightened, want nothing learned",
					w.Session.SummaryCount, w.Session.PromptState, w.learned.Window("scripted"), len(w.learned.tightened))
			}
			if r := string(w.run.Context); !strings.Contains(r, `"overflows":0`) && strings.Contains(r, `"overflows"`) {
				t.Errorf("got the report %s, want no overflow", r)
			}
			if got := len(w.records()); got != c.want {
				t.Errorf("%d calls are booked, want %d", got, c.want)
			}
		})
	}
}

// A prompt that is no longer than what the model has accepted, and small for its window,
// is not tried again; nor is one that is short in any case.
func TestUnclearRefusalOfAShortPrompt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		turns, fitted int
		want          int // requests
	}{
		"short":                              {1, 0, 1},
		"accepted before":                    {20, 9_000, 1},
		"longer than what was accepted":      {20, 2_000, 2},
		"nothing was accepted yet":           {20, 0, 2},
		"a quarter of the window":            {150, 20_000, 2},
		"more was accepted: nothing learned": {150, 60_000, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 64_000, llmtest.Fail(unclear("Bad Request")), "fits now").turns(c.turns, 120)
			w.learned.Fitted("scripted", c.fitted)
			_, err := w.call(t.Context(), w.begin("go"))
			if got := len(w.model.Requests()); got != c.want || (err == nil) != (c.want > 1) {
				t.Errorf("got %d requests, error %v, want %d", got, err, c.want)
			}
			learned := w.learned.Window("scripted")
			if wanted := c.want > 1 && c.fitted < 60_000; (learned > 0) != wanted || wanted && learned < c.fitted {
				t.Errorf("got the window %d, want one learned: %v, at least %d", learned, wanted, c.fitted)
			}
		})
	}
}

// A shorter try that fails for a reason that is clear ends as that reason says.
func TestUnclearRefusalThenAnotherFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 32_000, llmtest.Fail(unclear("Bad Request")), llmtest.Fail(tooLong(5000, 0)), "fits now").turns(60, 120)
	w.writer.Add(llmtest.Step{Text: []string{"short summary"}, Repeat: true})
	w.mustCall(w.begin("go"))
	if got := w.learned.Window("scripted"); got != 5000 {
		t.Errorf("got the window %d, want the one that was told", got)
	}
	w = newWorld(t, 32_000, llmtest.Fail(unclear("Bad Request")), down(llm.KindAuth)).turns(60, 120).fallingBackTo(named("second", 128_000, "from the second"))
	w.mustCall(w.begin("go"))
	if w.last().Model != "second" || !slices.Equal(booked(w), []string{"scripted invalid", "scripted auth", "second"}) {
		t.Errorf("got the answer of %s, books %q, want the fallback's", w.last().Model, booked(w))
	}
}
