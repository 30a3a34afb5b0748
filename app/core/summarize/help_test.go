package summarize_test

import (
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// counter counts a token for every four bytes, rounded up.
type counter struct{}

func (counter) Text(s string) int { return (len(s) + 3) / 4 }

// good is an answer that is a summary.
const good = "## Goal\nShip the release on Friday.\n\n## Facts\nLisbon has the staging cluster; Marta tests there until Thursday evening.\n\n" +
	"## Decisions\nUse PostgreSQL, because two replicas write."

// sentences returns n sentences that say something different each.
func sentences(n int) string {
	things := strings.Fields("pump door lamp boat roof shed well gate tank path wall barn desk ship coat bell")
	likes := strings.Fields("red old new big dry wet hot low tall thin round clean empty quiet heavy cheap narrow")
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "The %s %s is %s. ", likes[i%len(likes)], things[(i/2+i)%len(things)], likes[(3*i+i/17+1)%len(likes)])
	}
	return strings.TrimSpace(b.String())
}

// user returns a user message.
func user(seq int64, text string) core.Message {
	return core.Message{ID: core.MessageID(fmt.Sprintf("id-%08d", seq)), Seq: seq, Role: core.RoleUser, Content: text, Status: core.MessageComplete}
}

func assistant(seq int64, text string, calls ...core.ToolCall) core.Message {
	m := user(seq, text)
	m.Role, m.ToolCalls = core.RoleAssistant, calls
	return m
}

func toolResult(seq int64, call, text string) core.Message {
	m := user(seq, text)
	m.Role, m.ToolCallID, m.ToolName = core.RoleTool, call, "shell"
	return m
}

// talk returns n messages of about size tokens each.
func talk(n, size int) []core.Message {
	var out []core.Message
	for i := range n {
		m := user(int64(i+1), fmt.Sprintf("message %d: %s", i+1, strings.Repeat("word ", size*4/5)))
		if i%2 == 1 {
			m.Role = core.RoleAssistant
		}
		m.TokenCount = counter{}.Text(m.Content) + 4
		out = append(out, m)
	}
	return out
}

// request asks for a summary of ten messages of 200 tokens in at most 800.
func request() summarize.Request {
	return summarize.Request{Preset: summarize.PresetWindow, Messages: talk(10, 200), Limit: 800}
}

// over returns a Summarizer with strategy llm over the model.
func over(model llm.Model) *summarize.Summarizer {
	return summarize.New(summarize.NewLLM(model, counter{}, nil), counter{})
}

// run summarizes and fails the test on an error.
func run(t *testing.T, model llm.Model, req summarize.Request) summarize.Result {
	t.Helper()
	return must.Get(over(model).Summarize(t.Context(), req))(t)
}

// wantSummary fails unless the result is within the request's bounds.
func wantSummary(t *testing.T, req summarize.Request, res summarize.Result) {
	t.Helper()
	compare.True(t, strings.TrimSpace(res.Content) != "", "got an empty summary")
	got := (counter{}).Text(res.Content)
	compare.True(t, got == res.Tokens && got <= req.Limit, "got %d tokens, said to be %d, want at most %d", got, res.Tokens, req.Limit)
	if req.Replaces > 0 && res.Tokens >= req.Replaces {
		t.Errorf("got %d tokens, want less than the %d replaced", res.Tokens, req.Replaces)
	}
}

// lastUser returns what a request says, its only user message.
func lastUser(t *testing.T, req llm.Request) string {
	t.Helper()
	if len(req.Messages) != 1 || req.Messages[0].Role != core.RoleUser {
		t.Fatalf("got %d messages, want one of the user", len(req.Messages))
	}
	return req.Messages[0].Content
}

// between returns what stands between the tags in text.
func between(t *testing.T, text, tag string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "<"+tag+">\n")
	inner, _, closed := strings.Cut(rest, "\n</"+tag+">")
	if !ok || !closed {
		t.Fatalf("no %s in:\n%s", tag, text)
	}
	return inner
}
