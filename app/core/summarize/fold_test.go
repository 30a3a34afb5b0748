package summarize_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// small is a summarizer with a window of its own.
func small(window int, answers ...any) *llmtest.Script {
	return llmtest.Scripted(answers...).WithInfo(llm.Info{Name: "small", Provider: "p", Window: window, MaxOutput: 1_000})
}

// quotedAnswer answers with a summary that names the messages of the request.
func quotedAnswer() llmtest.Step {
	name := regexp.MustCompile(`message \d+`)
	return llmtest.Step{Repeat: true, From: func(r llm.Request) llmtest.Step {
		names := name.FindAllString(r.Messages[0].Content, -1)
		return llmtest.Say(good + "\n\n## Open\nWho reads the words that the user and the assistant repeat, and what for? They stand in " + strings.Join(names[max(0, len(names)-60):], ", ") + ".")
	}}
}

// fits fails unless every prompt fits the model's window together with its answer.
func fits(t *testing.T, model *llmtest.Script, factor float64) {
	t.Helper()
	for i, r := range model.Requests() {
		prompt := counter{}.Text(r.System[0]) + counter{}.Text(lastUser(t, r))
		if got := int(float64(prompt)*factor) + r.MaxOutputTokens; got > model.Info().Window {
			t.Errorf("request %d takes %d tokens, want at most %d", i+1, got, model.Info().Window)
		}
	}
}

// What fits the room that Room tells is summarized in one call, whole, and
// the call fits the summarizer's window.
func TestRow13OneCallSeesAllThatFits(t *testing.T) {
	t.Parallel()
	const factor = 1.3
	for _, previous := range []string{"", strings.Repeat("An old fact is here. ", 60)} {
		model := small(4_096, quotedAnswer())
		strategy := summarize.NewLLM(model, counter{}, func() float64 { return factor })
		req := request()
		req.Previous = previous
		room, used := strategy.Room(req), 0
		for req.Messages = nil; ; {
			m := talk(len(req.Messages)+1, 100)[len(req.Messages)]
			if used += m.TokenCount + 8; used > room {
				break
			}
			req.Messages = append(req.Messages, m)
		}
		res := must.Get(summarize.New(strategy, counter{}).Summarize(t.Context(), req))(t)
		wantSummary(t, req, res)
		fits(t, model, factor)
		if len(model.Requests()) != 1 || res.Shortened != 0 || len(req.Messages) < 10 {
			t.Errorf("got %d calls, %d of %d messages shortened, want all of many in one call", len(model.Requests()), res.Shortened, len(req.Messages))
		}
		seen := between(t, lastUser(t, model.Requests()[0]), "transcript")
		for _, m := range req.Messages {
			compare.Contains(t, fmt.Sprintf("message %d was not shown whole", m.Seq), strings.TrimSpace(m.Content), seen)
		}
	}
}

// More than a call takes is cut, tool results first, and counted: whoever orders a summary
// orders less.
func TestMoreThanOneCall(t *testing.T) {
	t.Parallel()
	model := small(4_096, quotedAnswer())
	req := request()
	req.Messages = append(talk(18, 100)[10:], toolResult(19, "x", strings.Repeat("a line of output ", 2_000)))
	for i := range 8 {
		req.Messages = append(req.Messages, toolResult(int64(20+i), "x", strings.Repeat("more output ", 2_000)))
	}
	res := run(t, model, req)
	text := between(t, lastUser(t, model.Requests()[0]), "transcript")
	for _, m := range req.Messages[:8] {
		compare.Contains(t, fmt.Sprintf("message %d was cut before the tool results", m.Seq), strings.TrimSpace(m.Content), text)
	}
	compare.Equal(t, "shortened results, calls", []any{9, 1}, []any{res.Shortened, len(res.Calls)})
	fits(t, model, 1.1)

	model = small(4_096, quotedAnswer())
	req.Messages = talk(4_000, 60)
	res = run(t, model, req)
	wantSummary(t, req, res)
	fits(t, model, 1.1)
	if len(res.Calls) != 1 || res.Shortened == 0 {
		t.Errorf("got %d calls, %d shortened, want one call that says what it lacks", len(res.Calls), res.Shortened)
	}
}

// A window in which no transcript fits is not asked at all.
func TestTinyWindow(t *testing.T) {
	t.Parallel()
	res := run(t, small(512), request())
	compare.Equal(t, "note after calls: want the fallback at once", []any{0, "fallback: the context window of the summary model is too small"}, []any{len(res.Calls), res.Note})
}

// A limit that the model cannot say in one answer is lowered to what it can.
func TestOutputLimit(t *testing.T) {
	t.Parallel()
	model := llmtest.Scripted(good).WithInfo(llm.Info{Name: "terse", Window: 16_000, MaxOutput: 330})
	req := request()
	req.Limit = 4_000
	run(t, model, req)
	sent := model.Requests()[0]
	if sent.MaxOutputTokens != 330 || !strings.Contains(lastUser(t, sent), "at most 210 tokens") {
		t.Errorf("got output limit %d and %q, want 330, and 210 tokens asked for", sent.MaxOutputTokens, lastUser(t, sent)[len(lastUser(t, sent))-120:])
	}
}

// Nothing but rows that are never sent (W14): no call, and no summary of them.
func TestNothingToSay(t *testing.T) {
	t.Parallel()
	m := user(1, strings.Repeat("Be helpful. ", 40))
	m.Role = core.RoleSystem
	res := run(t, llmtest.Scripted(), summarize.Request{Messages: []core.Message{m}, Limit: 100})
	if len(res.Calls) != 0 || strings.Contains(res.Content, "helpful") {
		t.Errorf("got %q after %d calls, want nothing of a system row", res.Content, len(res.Calls))
	}
}
