package term_test

import (
	"strings"
	"testing"
	"time"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// B5: both triggers with a bar each, the last summary, what happens next.
func TestDrawContext(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var b strings.Builder
	term.DrawContext(&b, core.ContextReport{
		Model: "gpt-4o", Policy: "budget", Window: 128_000, Reserve: 4096, Usable: 123_904, Used: 20_000, WillTrigger: true,
		Sections: []core.ContextPart{{Name: "system", Tokens: 500}, {Name: "tail", Tokens: 19_500, Messages: 28}, {Name: "free", Tokens: 103_904}},
		Triggers: []core.TriggerStatus{
			{Name: "messages", Value: 28, Threshold: 30, Percent: 93}, {Name: "tokens", Value: 19_500, Threshold: 128_000, Percent: 15},
		},
		Coverage: core.Coverage{Messages: 53, Summarized: 25, Verbatim: 28},
		Thoughts: &core.ThoughtsReport{
			Contract: "refuses", Kept: 12, Dropped: []core.ThoughtsGroup{{Reason: "changed", Count: 3, Detail: "the prompt before them has changed"}},
		},
		Summaries: []core.Summary{{Version: 1, MessagesCovered: 25, TokenCount: 850, Trigger: "messages", Strategy: "llm", CreatedAt: now.Add(-5 * time.Minute)}},
	}, now, 0)
	for _, want := range []string{
		"20,000 of 123,904 tokens used (16%)", "28 of 30 (93%)", "19,500 of 128,000 (15%)", "[##################--]",
		"summarization will trigger on the next message", "25 messages → 850 cl100k tokens", "5m ago",
		"53 messages: 25 summarized, 28 verbatim, 0 lost", "12 earlier blocks of the model's reasoning sent; 3 not: the prompt before them has changed",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if strings.HasPrefix(line, "[") && len([]rune(line)) != 62 {
			t.Errorf("the bar has %d characters, want 62: %q", len([]rune(line)), line)
		}
	}
}

func TestMarkdownPlainWithoutTerminal(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	m := term.NewMarkdown(&b, 0, 0)
	m.Write("**bold** ")
	m.Write("text")
	m.Close()
	if got, want := b.String(), "**bold** text\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// On a narrow terminal nothing is wider than it, and every number is there.
func TestDrawContextNarrow(t *testing.T) {
	t.Parallel()
	r := core.ContextReport{
		Model: "gpt-4o", Policy: "window", Window: 128_000, Reserve: 4096, Usable: 123_904, Used: 90_000, WillTrigger: true,
		Sections:  []core.ContextPart{{Name: "summary", Tokens: 900}, {Name: "tail", Tokens: 89_100, Messages: 128}, {Name: "new"}},
		Triggers:  []core.TriggerStatus{{Name: "share", Value: 90_000, Threshold: 102_400, Percent: 87}},
		Reasons:   []string{"what will happen, in a sentence that takes more than one line"},
		Coverage:  core.Coverage{Messages: 200, Summarized: 72, Verbatim: 100, Masked: 20, Shortened: 5, LeftOut: 3},
		Summaries: []core.Summary{{Version: 2, MessagesCovered: 72}, {Version: 1, MessagesCovered: 1}},
	}
	for _, width := range []int{20, 40, 63} {
		s := newScreen(t, width)
		term.DrawContext(s, r, time.Now(), width)
		if n := s.widest(); n >= width {
			t.Errorf("width %d: a row has %d columns:\n%s", width, n, s.text())
		}
		flat := strings.Join(strings.Fields(s.text()), " ")
		for _, want := range []string{"90,000 of 102,400", "(87%)", "3 left out", "128 messages", "earlier v1: 1 message →"} {
			if !strings.Contains(flat, want) {
				t.Errorf("width %d: no %q in:\n%s", width, want, s.text())
			}
		}
	}
}

// W9: the source of the window is shown unless it is the model's known window.
func TestDrawWindow(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"provider": "window 8,192, learned from a provider error (context_window in models overrides it)\n",
		"default":  "window 8,192, assumed for an unknown model (context_window in models sets it)\n",
		"model":    "", "configuration": "",
	} {
		var b strings.Builder
		term.DrawContext(&b, core.ContextReport{Model: "m", Policy: "window", Window: 8192, WindowFrom: from, Calibration: core.CalibrationView{Deviation: 0.15}}, time.Now(), 0)
		if got := b.String(); want != "" && !strings.Contains(got, want) || want == "" && strings.Contains(got, "window 8,192") {
			t.Errorf("%s: got\n%s\nwant %q", from, got, want)
		}
		if !strings.Contains(b.String(), "estimated ± 15%") {
			t.Errorf("%s: the report does not say how far the estimate may be off:\n%s", from, b.String())
		}
	}
}
