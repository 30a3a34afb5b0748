package summarize_test

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/app/core/summarize"
	"bobbin/tests/compare"
	"bobbin/tests/seed"
)

func extract(tb interface {
	Helper()
	Fatalf(string, ...any)
	Context() context.Context
}, req summarize.Request) summarize.Result {
	tb.Helper()
	res, err := summarize.NewExtractive(counter{}).Summarize(tb.Context(), req)
	if err != nil {
		tb.Fatalf("extractive: %v", err)
	}
	return res
}

func TestExtractive(t *testing.T) {
	t.Parallel()
	res := extract(t, summarize.Request{Limit: 800, Messages: []core.Message{
		user(1, "Build me a parser\nfor dates."), assistant(2, "Which format? There are many of them, and they differ by country. The parser needs a table."), user(3, "ISO, in pkg/date.go"),
	}})
	want := `(Extracted by a program, without a language model.)

## User Messages
- "Build me a parser for dates." [1]
- "ISO, in pkg/date.go" [3]

## Assistant Messages
- "There are many of them, and they differ by country." [2]

## Also Mentioned
- Build parser dates [1]
- Which format There many them they differ country parser needs table [2]

## Files Referenced
- pkg/date.go [3]`
	compare.Equal(t, "summary", want, res.Content)
	compare.Equal(t, "want strategy extractive without a model", []any{"extractive", "", (counter{}).Text(want)}, []any{res.Strategy, res.Model, res.Tokens})
}

// An earlier summary is folded in, whoever wrote it.
func TestExtractiveFolds(t *testing.T) {
	t.Parallel()
	first := "## Conversation Summary\n## Goal\nShip it.\n\n## Decisions\nUse Go.\n\n## Files Referenced\n- a.go [1]"
	res := extract(t, summarize.Request{Limit: 800, Previous: first, Messages: []core.Message{user(7, "And b.go?")}})
	want := `(Extracted by a program, without a language model.)

## Earlier Summary
## Goal
Ship it.

## Decisions
Use Go.

## User Messages
- "And b.go?" [7]

## Files Referenced
- a.go [1]
- b.go [7]`
	compare.Equal(t, "over a model's summary", want, res.Content)
	again := extract(t, summarize.Request{Limit: 800, Previous: res.Content, Messages: []core.Message{user(9, "Thanks")}})
	want = strings.Replace(want, "- \"And b.go?\" [7]", "- \"And b.go?\" [7]\n- \"Thanks\" [9]", 1)
	compare.Equal(t, "over its own", want, again.Content)
}

// message draws a message of any kind and any text.
func message(t *rapid.T, seq int64) core.Message {
	text := rapid.OneOf(
		rapid.String(), rapid.StringN(0, 2_000, -1),
		rapid.SampledFrom([]string{"", "\xff\xfe", "## Goal\nx", "+3 more", "- a [1]", "## User Messages\n- [2]", "$ make\nexit status 2\nError: x", "https://x.org/a.go", "</summary>", strings.Repeat("長い文", 300)}),
	).Draw(t, "text")
	m := core.Message{Seq: seq, Role: rapid.SampledFrom([]core.Role{core.RoleUser, core.RoleAssistant, core.RoleTool, core.RoleSystem}).Draw(t, "role"), Content: text}
	if m.Role == core.RoleAssistant && rapid.Bool().Draw(t, "calls") {
		m.ToolCalls = []core.ToolCall{{ID: "c", Name: "run", Arguments: rapid.SampledFrom([]string{`{"cmd":"ls"}`, "{", `[["a"]]`, `"x"`}).Draw(t, "arguments")}}
	}
	return m
}

// Extractive and, L5, notes always succeed: within any limit, never empty, smaller than what they
// replace, valid UTF-8.
func TestExtractiveLaws(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		req := summarize.Request{
			Limit:    rapid.OneOf(rapid.IntRange(summarize.MinLimit, 100), rapid.IntRange(summarize.MinLimit, 3_000)).Draw(t, "limit"),
			Previous: rapid.OneOf(rapid.Just(""), rapid.String(), rapid.Just(good)).Draw(t, "previous"),
		}
		for i := range rapid.IntRange(1, 12).Draw(t, "messages") {
			req.Messages = append(req.Messages, message(t, int64(i+1)))
		}
		if rapid.Bool().Draw(t, "replaces") {
			req.Replaces = rapid.IntRange(summarize.MinLimit+1, 500).Draw(t, "tokens")
		}
		strategy := rapid.SampledFrom([]*summarize.Extract{summarize.NewExtractive(counter{}), summarize.NewSteps(counter{})}).Draw(t, "strategy")
		res, _ := strategy.Summarize(t.Context(), req)
		if got := (counter{}).Text(res.Content); got > req.Limit || got != res.Tokens {
			t.Fatalf("got %d tokens, said to be %d, want at most %d", got, res.Tokens, req.Limit)
		}
		if req.Replaces > 0 && res.Tokens >= req.Replaces {
			t.Fatalf("got %d tokens, want less than %d", res.Tokens, req.Replaces)
		}
		if strings.TrimSpace(res.Content) == "" || !utf8.ValidString(res.Content) {
			t.Fatalf("got %q, want text", res.Content)
		}
		if again, _ := strategy.Summarize(t.Context(), req); again.Content != res.Content {
			t.Fatalf("got %q and then %q for the same request", res.Content, again.Content)
		}
	})
}
