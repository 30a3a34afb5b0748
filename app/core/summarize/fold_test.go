package summarize_test

import (
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
)

// small is a summarizer with a window of its own.
func small(window int, answers ...any) *llm.Script {
	return llm.Scripted(answers...).WithInfo(llm.Info{Name: "small", Provider: "p", Window: window, MaxOutput: 1_000})
}

// numbered answers with a summary that names its number and repeats the one before.
func numbered() llm.Step {
	n := 0
	return llm.Step{Repeat: true, From: func(llm.Request) llm.Step {
		n++
		return llm.Say(fmt.Sprintf("## Facts\nsummary %d", n))
	}}
}

// fits fails unless every prompt fits the model's window together with its answer.
func fits(t *testing.T, model *llm.Script, factor float64) {
	t.Helper()
	for i, r := range model.Requests() {
		prompt := counter{}.Text(r.System[0]) + counter{}.Text(lastUser(t, r))
		if got := int(float64(prompt)*factor) + r.MaxOutputTokens; got > model.Info().Window {
			t.Errorf("request %d takes %d tokens, want at most %d", i+1, got, model.Info().Window)
		}
	}
}

// § 10 row 13: material over the summarizer's own window is folded in chunks,
// and every message reaches it once.
func TestRow13MaterialOverItsWindowIsFolded(t *testing.T) {
	t.Parallel()
	const factor = 1.3
	model := small(4_096, numbered())
	req := request()
	req.Messages = talk(60, 200)
	strategy := summarize.NewLLM(model, counter{}, func() float64 { return factor })
	res, err := summarize.New(strategy, counter{}).Summarize(t.Context(), req)
	if err != nil {
		t.Fatalf("summarize: %v", err)
	}
	wantSummary(t, req, res)
	fits(t, model, factor)
	n := len(model.Requests())
	if n < 6 || n > 32 || res.Note != "" || res.Content != fmt.Sprintf("## Facts\nsummary %d", n) {
		t.Errorf("got %q (%s) after %d calls, want the last summary of a fold", res.Content, res.Note, n)
	}
	var seen strings.Builder
	for i, r := range model.Requests() {
		text := lastUser(t, r)
		seen.WriteString(between(t, text, "transcript") + "\n")
		if want := fmt.Sprintf("part %d of %d", i+1, n); !strings.Contains(text, want) {
			t.Errorf("request %d does not say %q", i+1, want)
		}
		if i > 0 && between(t, text, "summary") != fmt.Sprintf("## Facts\nsummary %d", i) {
			t.Errorf("request %d does not extend summary %d", i+1, i)
		}
	}
	for _, m := range req.Messages {
		if got := strings.Count(seen.String(), fmt.Sprintf("message %d: ", m.Seq)); got != 1 {
			t.Errorf("message %d was shown %d times, want once", m.Seq, got)
		}
	}
}

// One message over a chunk is cut into head and tail with a mark.
func TestHugeMessage(t *testing.T) {
	t.Parallel()
	model := small(4_096, numbered())
	req := request()
	req.Messages = append(talk(4, 100), user(5, "BEGIN "+strings.Repeat("word ", 40_000)+"END"))
	res := run(t, model, req)
	wantSummary(t, req, res)
	fits(t, model, 1.1)
	requests := model.Requests()
	last := between(t, lastUser(t, requests[len(requests)-1]), "transcript")
	if !strings.HasPrefix(last, "[5] user: BEGIN") || !strings.HasSuffix(last, "END") || !strings.Contains(last, "bytes left out") {
		t.Errorf("got %q … %q, want head, mark and tail", last[:40], last[len(last)-40:])
	}
	if len(requests) > 3 {
		t.Errorf("got %d calls, want one message to be one chunk", len(requests))
	}
}

// A backlog that would need too many calls is shortened; one that is beyond all
// measure is left to the strategy without a model. The number of calls is bounded.
func TestBacklog(t *testing.T) {
	t.Parallel()
	model := small(4_096, numbered())
	req := request()
	req.Messages = talk(400, 600)
	res := run(t, model, req)
	wantSummary(t, req, res)
	fits(t, model, 1.1)
	if n := len(res.Calls); res.Note != "" || n < 8 || n > 32 {
		t.Errorf("got note %q after %d calls, want a summary after at most 32", res.Note, n)
	}
	req.Messages = talk(4_000, 60)
	res = run(t, small(4_096, numbered()), req)
	wantSummary(t, req, res)
	if len(res.Calls) != 0 || res.Note != "fallback: there is too much for the summary model's window" {
		t.Errorf("got note %q after %d calls, want the fallback at once", res.Note, len(res.Calls))
	}
}

// A window in which no transcript fits is not asked at all.
func TestTinyWindow(t *testing.T) {
	t.Parallel()
	res := run(t, small(512), request())
	if len(res.Calls) != 0 || res.Note != "fallback: the window of the summary model is too small" {
		t.Errorf("got note %q after %d calls, want the fallback at once", res.Note, len(res.Calls))
	}
}

// A summary of a model with a larger window is cut before it is extended.
func TestLargePrevious(t *testing.T) {
	t.Parallel()
	model := small(4_096, numbered())
	req := request()
	req.Previous = "## Goal\nShip it.\n\n## Facts\n" + strings.Repeat("An old fact is here. ", 1_000) + "The newest fact is 4711."
	res := run(t, model, req)
	wantSummary(t, req, res)
	fits(t, model, 1.1)
	old := between(t, lastUser(t, model.Requests()[0]), "summary")
	if !strings.Contains(old, "Ship it.") || !strings.HasSuffix(old, "4711.") || len(old) > 5_000 {
		t.Errorf("got %d bytes of the old summary, want it cut at its oldest facts", len(old))
	}
}

// A wrong idea of the window is corrected by what the provider says, at most twice.
func TestRow13WindowIsCorrectedByTheProvider(t *testing.T) {
	t.Parallel()
	told := &llm.Error{Kind: llm.KindContextLength, Limit: 4_096}
	model := llm.Scripted(told, numbered()).WithInfo(llm.Info{Name: "liar", Window: 32_000})
	req := request()
	req.Messages = talk(20, 400)
	res := run(t, model, req)
	if res.Note != "" || res.Calls[0].Error != "context_length" || len(res.Calls) < 4 {
		t.Errorf("got note %q after %d calls, want smaller chunks", res.Note, len(res.Calls))
	}
	for i, r := range model.Requests()[1:] {
		if got := (counter{}).Text(lastUser(t, r)) + r.MaxOutputTokens; got > told.Limit {
			t.Errorf("request %d takes %d tokens, want at most %d", i+2, got, told.Limit)
		}
	}
	untold := llm.Step{Err: &llm.Error{Kind: llm.KindContextLength}, Repeat: true}
	res = run(t, llm.Scripted(untold), req)
	if len(res.Calls) != 3 || res.Note != "fallback: the model failed (context_length)" {
		t.Errorf("got note %q after %d calls, want the fallback after 3", res.Note, len(res.Calls))
	}
}

// A chunk in the middle may fail once, without beginning anew.
func TestRetryInTheMiddle(t *testing.T) {
	t.Parallel()
	model := small(4_096, "one", "", "two", numbered())
	req := request()
	req.Messages = talk(30, 200)
	res := run(t, model, req)
	requests := model.Requests()
	if res.Note != "" || between(t, lastUser(t, requests[2]), "summary") != "one" || between(t, lastUser(t, requests[3]), "summary") != "two" {
		t.Errorf("got note %q, want the chunk repeated and the fold to go on", res.Note)
	}
}

// A limit that the model cannot say in one answer is lowered to what it can.
func TestOutputLimit(t *testing.T) {
	t.Parallel()
	model := llm.Scripted(good).WithInfo(llm.Info{Name: "terse", Window: 16_000, MaxOutput: 330})
	req := request()
	req.Limit = 4_000
	run(t, model, req)
	sent := model.Requests()[0]
	if sent.MaxOutputTokens != 330 || !strings.Contains(lastUser(t, sent), "at most 300 tokens") {
		t.Errorf("got output limit %d and %q, want 330 and 300 tokens asked for", sent.MaxOutputTokens, lastUser(t, sent)[len(lastUser(t, sent))-120:])
	}
}

// Nothing but rows that are never sent (W14): no call, and no summary of them.
func TestNothingToSay(t *testing.T) {
	t.Parallel()
	m := user(1, strings.Repeat("Be helpful. ", 40))
	m.Role = core.RoleSystem
	res := run(t, llm.Scripted(), summarize.Request{Messages: []core.Message{m}, Limit: 100})
	if len(res.Calls) != 0 || strings.Contains(res.Content, "helpful") {
		t.Errorf("got %q after %d calls, want nothing of a system row", res.Content, len(res.Calls))
	}
}
