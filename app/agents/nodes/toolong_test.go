package nodes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
)

func tooLong(limit, requested int) *llm.Error {
	return &llm.Error{Kind: llm.KindContextLength, Provider: "scripted", Message: "too long", Limit: limit, Requested: requested}
}

// The provider's "context length exceeded" is not a failure. The
// prompt is planned again, strictly smaller each time, at most four times.
func TestRefusedAsTooLong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refusals  []any
		turns     int
		fails     bool
		tightened int // where the window may be right: near it, or where there are numbers
	}{
		"once, nothing told":       {[]any{tooLong(0, 0)}, 20, false, 1},
		"once, the limit told":     {[]any{tooLong(5000, 0)}, 20, false, 1},
		"once, both told":          {[]any{tooLong(5000, 7500)}, 20, false, 1},
		"twice":                    {[]any{tooLong(0, 0), tooLong(0, 0)}, 20, false, 1},
		"three times":              {[]any{tooLong(0, 0), tooLong(0, 0), tooLong(0, 0)}, 20, false, 1},
		"five times":               {slices.Repeat([]any{tooLong(7000, 0)}, 5), 20, true, 1},
		"a limit above the window": {[]any{tooLong(1_000_000, 0)}, 20, false, 1},
		"a prompt of no size":      {[]any{tooLong(0, 1)}, 20, false, 1},
		"one turn":                 {[]any{tooLong(0, 0)}, 1, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 8192, append(c.refusals, "fits now")...)
			w.writer.Add(llmtest.Step{Text: []string{"short summary"}, Repeat: true})
			_, err := w.call(t.Context(), w.turns(c.turns, 120).begin("go"))
			if failed := kindOf(err) == llm.KindContextLength; failed != c.fails || err != nil && !failed {
				t.Fatalf("got error %v, want a refusal: %v", err, c.fails)
			}
			reqs := w.model.Requests()
			if want := min(len(c.refusals)+1, 5); len(reqs) != want {
				t.Fatalf("%d model calls, want %d", len(reqs), want)
			}
			for i := 1; i < len(reqs); i++ {
				if a, b := w.size(reqs[i-1]), w.size(reqs[i]); b >= a {
					t.Errorf("prompt %d has %d tokens, the refused one before %d", i+1, b, a)
				}
				if a, b := reqs[i-1].MaxOutputTokens, reqs[i].MaxOutputTokens; b > a {
					t.Errorf("call %d may answer with %d tokens, the refused one before with %d", i+1, b, a)
				}
			}
			compare.Equal(t, "the estimate was tightened", c.tightened == 1, w.tightened("scripted"))
			compare.Equal(t, "calls are booked", len(reqs), len(w.records()))
		})
	}
}

// A limit that the provider told once holds for the rest of the run.
func TestToldLimitHoldsForTheRun(t *testing.T) {
	t.Parallel()
	const limit = 3000
	refused := 0
	var w *world
	w = newWorld(t, 32_000, llmtest.Step{Repeat: true, From: func(req llm.Request) llmtest.Step {
		switch {
		case w.size(req)+req.MaxOutputTokens > limit:
			refused++
			return llmtest.Fail(tooLong(limit, 0))
		case req.ToolChoice == core.ToolChoiceNone:
			return llmtest.Say("done")
		default:
			return llmtest.Call(call("c", "look"))
		}
	}}).with(says("look", strings.Repeat("word ", 800)))
	w.writer.Add(llmtest.Step{Text: []string{"short summary"}, Repeat: true})
	w.loop(w.turns(20, 120).begin("go"))
	compare.Equal(t, "prompts were refused: want only the first", 1, refused)
}

// Where the window turns out to be smaller and the provider's count is
// ours, the estimate was right: the window is learned, for the model, and not the count.
func TestSmallerWindowIsNoMiscount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		told    func(raw, output int) *llm.Error
		tighten bool
	}{
		"as we count": {func(raw, _ int) *llm.Error {
			return &llm.Error{Kind: llm.KindContextLength, Limit: 4000, Prompt: raw, Requested: raw}
		}, false},
		"with the answer":   {func(raw, out int) *llm.Error { return tooLong(4000, raw+out) }, false},
		"more than we do":   {func(raw, out int) *llm.Error { return tooLong(4000, 2*(raw+out)) }, true},
		"nothing counted":   {func(int, int) *llm.Error { return tooLong(4000, 0) }, true},
		"the window we had": {func(raw, out int) *llm.Error { return tooLong(8192, raw+out) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *world
			w = newWorld(t, 8192, func(req llm.Request) llmtest.Step { return llmtest.Fail(c.told(w.size(req), req.MaxOutputTokens)) }, "fits now")
			w.writer.Add(llmtest.Step{Text: []string{"short summary"}, Repeat: true})
			w.mustCall(w.turns(20, 120).begin("go"))
			compare.Equal(t, "the estimate was tightened", c.tighten, w.tightened("scripted"))
			want := 4000
			if name == "the window we had" {
				want = 0
			}
			if got := w.learned.Window("scripted"); got != want {
				t.Errorf("got the window %d for the model, want %d", got, want)
			}
		})
	}
}

// unclear is a refusal that does not say what is wrong.
func unclear(words string) *llm.Error {
	return &llm.Error{Kind: llm.KindInvalid, Unclear: true, Provider: "scripted", Status: 400, Message: words}
}

// A request that is refused for no clear reason is tried again with a shorter prompt
// if it was large for the model. If that is accepted, the prompt was too long.
func TestUnclearRefusalOfALongPrompt(t *testing.T) {
	t.Parallel()
	for _, refusals := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(refusals), func(t *testing.T) {
			t.Parallel()
			script := slices.Repeat([]any{llmtest.Fail(unclear("Bad \x1b[31mRequest"))}, refusals)
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
			compare.Equal(t, "summaries and the state: want nothing kept of a try", []any{0, string(before.PromptState)}, []any{w.Session.SummaryCount, string(w.Session.PromptState)})
			if got := w.learned.SessionWindow("scripted", w.Session.ID); got < first/4 || got > first {
				t.Errorf("got the window %d for the session, want one below the refused prompt of %d, and at least a quarter", got, first)
			}
			compare.Equal(t, "the window of the other sessions", 0, w.learned.Window("scripted"))
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
	}{"shorter ones are refused": {"You are a tester.", 5}, "there is no shorter one": {strings.Repeat("rule ", 12_000), 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 32_000, append([]any{llmtest.Fail(unclear("the first"))}, slices.Repeat([]any{llmtest.Fail(unclear("another"))}, 4)...)...).turns(40, 120)
			w.profile.SystemPrompt = c.system
			_, err := w.call(t.Context(), w.begin("go"))
			if e := llm.AsError(err); e == nil || e.Kind != llm.KindInvalid || e.Message != "the first" {
				t.Errorf("got %v, want the first refusal", err)
			}
			compare.Equal(t, "requests", c.want, len(w.model.Requests()))
			if w.Session.SummaryCount != 0 || len(w.Session.PromptState) > 0 || w.learned.Window("scripted") != 0 || w.tightened("scripted") {
				t.Errorf("got %d summaries, state %s, window %d, estimate tightened %t, want nothing learned",
					w.Session.SummaryCount, w.Session.PromptState, w.learned.Window("scripted"), w.tightened("scripted"))
			}
			if r := string(w.run.Context); !strings.Contains(r, `"overflows":0`) && strings.Contains(r, `"overflows"`) {
				t.Errorf("got the report %s, want no overflow", r)
			}
			compare.Equal(t, "calls are booked", c.want, len(w.records()))
		})
	}
}

// A server that is overloaded by a prompt of half the size as well gets one of a quarter.
func TestOverloadOfShorterPrompts(t *testing.T) {
	t.Parallel()
	busy := &llm.Error{Kind: llm.KindOverloaded, Provider: "scripted", Status: 503, Message: "Chat completion aborted"}
	w := newWorld(t, 32_000, busy, busy, "fits now").turns(60, 120)
	w.learned.SetOverload("scripted", w.Session.ID, tokens.Overloaded)
	_, err := w.call(t.Context(), w.begin("go"))
	var sizes []int
	for _, r := range w.model.Requests() {
		sizes = append(sizes, len(r.Messages))
	}
	compare.True(t, err == nil && len(sizes) == 3 && sizes[1] <= sizes[0]/2 && sizes[2] <= sizes[1]*6/10, "got %v, messages %v, want an answer to the third prompt", err, sizes)
}

// A prompt that is no longer than what the model has accepted, and small for its window,
// is not tried again; nor is one that is short in any case. A server that says of long prompts that it is overloaded
// gets shorter ones, if the last message met that too. Nothing is learned for other sessions.
func TestRefusalOfAShortPrompt(t *testing.T) {
	t.Parallel()
	busy := &llm.Error{Kind: llm.KindOverloaded, Provider: "scripted", Status: 503, Message: "Chat completion aborted"}
	for name, c := range map[string]struct {
		refusal              *llm.Error
		window, turns        int
		accepted             int
		before               tokens.Overload
		requests, leastLearn int // 0 = nothing is learned
	}{
		"short":                               {unclear("Bad Request"), 64_000, 1, 0, 0, 1, 0},
		"accepted before":                     {unclear("Bad Request"), 64_000, 20, 9_000, 0, 1, 0},
		"longer than what was accepted":       {unclear("Bad Request"), 64_000, 20, 2_000, 0, 2, 2_000},
		"nothing was accepted yet":            {unclear("Bad Request"), 64_000, 20, 0, 0, 2, 1},
		"a quarter of the window":             {unclear("Bad Request"), 64_000, 150, 20_000, 0, 2, 20_000},
		"more was accepted: nothing learned":  {unclear("Bad Request"), 64_000, 150, 60_000, 0, 2, 0},
		"busy":                                {busy, 32_000, 60, 3_000, tokens.NotOverloaded, 1, 0},
		"busy twice, nothing accepted yet":    {busy, 32_000, 60, 0, tokens.Overloaded, 2, 0},
		"busy twice, small for its window":    {busy, 128_000, 20, 2_000, tokens.Overloaded, 2, 0},
		"busy twice, accepted before":         {busy, 32_000, 60, 20_000, tokens.Overloaded, 1, 0},
		"busy twice, short":                   {busy, 32_000, 1, 10, tokens.Overloaded, 1, 0},
		"busy after an answer to a short one": {busy, 32_000, 60, 3_000, tokens.OverloadedAtFirst, 2, 3_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.window, c.refusal, "fits now").turns(c.turns, 120)
			w.learned.Fitted("scripted", c.accepted)
			w.learned.SetOverload("scripted", w.Session.ID, c.before)
			_, err := w.call(t.Context(), w.begin("go"))
			if got := len(w.model.Requests()); got != c.requests || (err == nil) != (c.requests == 2) {
				t.Errorf("got %d requests, error %v, want %d", got, err, c.requests)
			}
			if learned := w.learned.SessionWindow("scripted", w.Session.ID); (learned > 0) != (c.leastLearn > 0) || learned < c.leastLearn {
				t.Errorf("got the window %d, want one learned: %v, at least %d", learned, c.leastLearn > 0, c.leastLearn)
			}
			compare.Equal(t, "the window of the other sessions", 0, w.learned.Window("scripted"))
		})
	}
}
