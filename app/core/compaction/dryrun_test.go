package compaction_test

import (
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// plan is DryRun, which must succeed and change nothing.
func (w *world) plan(ask core.PlanPreview) core.ContextPlan {
	w.t.Helper()
	before := w.state()
	got := must.Get(w.control().DryRun(w.t.Context(), w.scope(), w.Session.ID, ask))(w.t)
	if c := got.Coverage; c.Summarized+c.Compacted+c.Verbatim+c.Masked+c.Shortened+c.LeftOut+c.Excluded != c.Messages || c.Messages != got.Context.Coverage.Messages {
		w.t.Errorf("got the coverage %+v of %d messages, want each message once", c, got.Context.Coverage.Messages)
	}
	if w.state() != before || len(w.Events)+len(w.feed.Published())+len(w.feed.Passing()) > 0 {
		w.t.Errorf("a dry run has changed something: %s, before %s", w.state(), before)
	}
	return got
}

// model puts another model with the window into the world.
func (w *world) other(window int) {
	w.models["other"] = llmtest.Scripted().WithInfo(llm.Info{Name: "other", Provider: "scripted", Window: window, MaxOutput: window / 8})
}

// The dry run is what the next message does, whatever it needs: of a short conversation it sends all,
// without a model call or a write (W5, W12).
func TestDryRunIsWhatHappens(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		turns, size int // of the conversation
		words       int // of the next message
		summarizes  bool
	}{
		"all fits":                   {4, 20, 20, false},
		"the message fires":          {20, 110, 2000, true},
		"it is too long already":     {30, 115, 5, true},
		"the message alone is large": {10, 50, 7000, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, core.ContextSettings{Timing: new("inline")}, 8192)
			w.writer.Add(always(strings.Repeat(notes+"\n", 30)))
			w.turns(tt.turns, tt.size)
			content := strings.Repeat("ask ", tt.words)
			got := w.plan(core.PlanPreview{Content: content, Tokens: w.said(core.RoleUser, content).TokenCount})
			if got.Floor != nil || !got.Fits || (got.Summarize != nil) != tt.summarizes || got.Tokens > got.Context.Usable || got.Context.Coverage.Lost != 0 {
				t.Fatalf("got %+v, want a plan that fits, with a summary: %v", got, tt.summarizes)
			}
			w.ask(content)
			before := w.state()
			_, d := w.fit()
			if !tt.summarizes {
				if used := w.report().Used; w.state() != before || len(w.writer.Requests())+len(w.feed.Passing()) > 0 || d.Messages() != len(w.Messages) || used != got.Tokens || got.Context.Used != used {
					t.Errorf("planned %d tokens without a summary, sent %d with version %d", got.Tokens, used, w.Session.SummaryVersion)
				}
				return
			}
			s := w.Summaries[0]
			if o := got.Summarize; o.FromID != s.FromID || o.FromSeq != s.FromSeq || o.ThroughID != s.ThroughID || o.ThroughSeq != s.ThroughSeq ||
				o.Messages != s.MessagesAdded || o.Tokens != s.TokensBefore || o.Trigger != s.Trigger || o.MaxTokens < s.TokenCount {
				t.Errorf("planned %+v, made %+v", o, s)
			}
			if sent := w.report().Coverage; sent != got.Coverage {
				t.Errorf("sent the messages as %+v, planned %+v", sent, got.Coverage)
			}
			if d.Total > got.Tokens {
				t.Errorf("sent %d tokens, planned at most %d", d.Total, got.Tokens)
			}
		})
	}
}

// When a summary is made depends on the policy; what is sent immediately does not change
// then.
func TestDryRunWhen(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		timing string
		size   int
		when   string
	}{
		{"inline", 160, core.WhenNow}, {"after_run", 160, core.WhenAfterRun}, {"background", 160, core.WhenBackground}, {"background", 145, core.WhenAhead},
		{"inline", 145, ""}, {"after_run", 145, ""}, {"background", 200, core.WhenNow},
	} {
		w := newWorld(t, core.ContextSettings{Timing: &tt.timing}, 16_000)
		w.turns(36, tt.size)
		got := w.plan(core.PlanPreview{Content: "ask", Tokens: 5})
		if when := ""; got.Summarize != nil || tt.when != "" {
			if got.Summarize != nil {
				when = got.Summarize.When
			}
			compare.Equal(t, fmt.Sprintf("%s, %d of %d tokens", tt.timing, got.Context.Used, got.Context.Usable), tt.when, when)
		}
		if now := tt.when == core.WhenNow; now == (got.Tokens == got.Context.Used) || !got.Fits {
			t.Errorf("%s: got a prompt of %d tokens, before anything %d", tt.timing, got.Tokens, got.Context.Used)
		}
	}
}

// W12: another model and another policy, before switching to them.
func TestDryRunElsewhere(t *testing.T) {
	t.Parallel()
	keep := 8
	w := newWorld(t, core.ContextSettings{Policy: "budget", MinRecentMessages: &keep}, 128_000)
	w.other(8192)
	w.turns(14, 150) // 28 messages, 4,500 tokens
	if got := w.plan(core.PlanPreview{}); got.Summarize != nil || got.Context.Model != "answerer" || got.Context.Policy != "budget" || !got.Context.WillTrigger {
		t.Errorf("as it is: got %+v, want nothing summarized, but soon", got)
	}
	got := w.plan(core.PlanPreview{Model: "other"})
	if got.Context.Model != "other" || got.Context.Window != 8192 || got.Summarize != nil {
		t.Errorf("a small model: got %+v, want its window", got)
	}
	w.turns(8, 150)
	if got := w.plan(core.PlanPreview{Model: "other"}); got.Summarize == nil || !got.Fits || len(got.Context.Rungs) == 0 {
		t.Errorf("a small model: got %+v, want a summary", got)
	}
	if got := w.plan(core.PlanPreview{Policy: "sliding"}); got.Summarize == nil || got.Summarize.Trigger != "messages" || got.Summarize.Messages != 34 || got.Context.Policy != "sliding" {
		t.Errorf("sliding: got %+v, want all but ten summarized", got.Summarize)
	}
	// The agent's own min_recent_messages is not the preset's.
	if got := w.plan(core.PlanPreview{Policy: "budget"}); got.Summarize == nil || got.Summarize.Messages != 38 {
		t.Errorf("budget: got %+v, want all but six summarized", got.Summarize)
	}
	if got := w.plan(core.PlanPreview{}); got.Summarize == nil || got.Summarize.Messages != 36 {
		t.Errorf("the agent's: got %+v, want all but eight summarized", got.Summarize)
	}
	if got := w.plan(core.PlanPreview{Policy: "off"}); got.Summarize != nil || !got.Fits {
		t.Errorf("off: got %+v, want nothing summarized", got.Summarize)
	}
}

// A tool result that the summary covers is not masked beside it, and what is masked is not word for word, too: plan
// counts the places.
func TestDryRunCountsMaskedResultsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 128_000)
	w.other(8192)
	for i := range 20 {
		w.ask("compute")
		w.called(fmt.Sprint(i), strings.Repeat("result ", 300))
		w.add(w.said(core.RoleAssistant, strings.Repeat("done ", 200)))
	}
	got := w.plan(core.PlanPreview{Model: "other", Content: "ask", Tokens: 5})
	if c := got.Coverage; got.Summarize == nil || got.Summarize.When != core.WhenNow || c.Summarized != got.Summarize.Messages || c.Masked == 0 || c.Masked >= got.Context.Coverage.Masked {
		t.Errorf("got %+v with the coverage %+v, before anything %+v, want some results masked and some summarized", got.Summarize, got.Coverage, got.Context.Coverage)
	}
}

// What cannot be shrunk is an answer and not an error; nothing is said to be summarized in vain.
func TestDryRunFloor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 128_000)
	w.other(2048)
	w.turns(20, 100)
	w.profile.SystemPrompt = strings.Repeat("word ", 3000)
	got := w.plan(core.PlanPreview{Model: "other"})
	if got.Fits || got.Summarize != nil || got.Floor == nil || got.Floor.Culprit != "system prompt" || got.Floor.Usable != got.Context.Usable ||
		got.Floor.Tokens <= got.Floor.Usable || !strings.Contains(got.Floor.Detail, "larger window") {
		t.Errorf("got %+v and %+v, want the floor", got, got.Floor)
	}
	if got := w.plan(core.PlanPreview{}); !got.Fits || got.Floor != nil {
		t.Errorf("its own model: got %+v, want that it fits", got)
	}
}
