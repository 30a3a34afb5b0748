package adapters_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// scenarios returns all of them.
func scenarios() []scenario {
	var all []scenario
	for _, some := range [][]scenario{answers(), toolCalls(), thoughts(), endings(), refusals(), requests()} {
		all = append(all, some...)
	}
	return all
}

// play returns a scene that says the pieces.
func play(pieces ...piece) func(*stage) { return func(s *stage) { s.say(pieces...) } }

var stop = end(core.FinishStop)

func answers() []scenario {
	const unicode = "Grüße, 世界! 👩‍👩‍👧 \u2028 <b>&amp;</b> \"q\" \\ \t\u0001"
	usage := core.Usage{InputTokens: 1_200, OutputTokens: 80, ReasoningTokens: 30, CacheReadTokens: 1_000, CacheWriteTokens: 150}
	return []scenario{
		{name: "text", scene: play(text("Hello"), text(" there"), counted(core.FinishStop, core.Usage{InputTokens: 10, OutputTokens: 2})),
			want: outcome{Text: "Hello there", Finish: core.FinishStop, Usage: &core.Usage{InputTokens: 10, OutputTokens: 2}}},
		{name: "text as it arrives", scene: func(s *stage) {
			s.say(text("first"))
			s.pause(10 * time.Second)
			s.say(text(" second"), stop)
		}, drive: func(ctx context.Context, _ *testing.T, c *caller) outcome {
			start := time.Now()
			var times []string
			o := c.call(ctx, func(d llm.Delta) {
				if d.Text != "" {
					times = append(times, d.Text+" "+time.Since(start).String())
				}
			})
			o.Note = strings.Join(times, ",")
			return o
		}, want: outcome{Text: "first second", Finish: core.FinishStop, Note: "first 0s, second 10s"}},
		{name: "unicode", scene: play(text(unicode), text("é"), stop), want: outcome{Text: unicode + "é", Finish: core.FinishStop}},
		{name: "unicode cut within a character", scene: func(s *stage) {
			for _, event := range append(s.dialect.writer().events(text("世界 👋")), "") {
				for _, b := range []byte(event) {
					s.raw(string([]byte{b}))
				}
			}
		}, want: outcome{Text: "世界 👋", Kind: llm.KindTruncated}},
		{name: "an answer that is not streamed", scene: func(s *stage) { s.raw(s.dialect.whole("all at once")) },
			want: outcome{Text: "all at once", Finish: core.FinishStop, Usage: &core.Usage{InputTokens: 10, OutputTokens: 2}}},
		{name: "signs of life", scene: play(piece{ping: true}, text("a"), piece{ping: true}, text("b"), stop),
			want: outcome{Text: "ab", Finish: core.FinishStop}},
		{name: "max_tokens", scene: play(text("cut o"), end(core.FinishLength)), want: outcome{Text: "cut o", Finish: core.FinishLength}},
		{name: "refusal", scene: play(text("I can't"), end(core.FinishContentFilter)), want: outcome{Text: "I can't", Finish: core.FinishContentFilter}},
		{name: "empty answer", scene: play(stop), want: outcome{Finish: core.FinishStop}},
		{name: "usage with cache", scene: play(text("a"), counted(core.FinishStop, usage)), want: outcome{Text: "a", Finish: core.FinishStop, Usage: &usage}},
		{name: "no usage", scene: play(text("a"), stop), want: outcome{Text: "a", Finish: core.FinishStop}},
	}
}

func toolCalls() []scenario {
	const exact = "{ \"n\": 90071992547409931234567890,  \"x\":1.10, \"s\":\"é\\u00e9\\/<\"}"
	calls := end(core.FinishToolCalls)
	return []scenario{
		{name: "tool call", scene: play(begin(0, "a", "calculator"), args(0, `{"expression":`), args(0, `"1+1"}`), calls),
			want: outcome{Calls: `a calculator {"expression":"1+1"}`, Finish: core.FinishToolCalls}},
		{name: "text and a tool call", scene: play(text("Let me see."), begin(0, "a", "f"), args(0, "{}"), calls),
			want: outcome{Text: "Let me see.", Calls: "a f {}", Finish: core.FinishToolCalls}},
		{name: "parallel tool calls", scene: play(begin(0, "a", "f"), args(0, `{"x":1}`), begin(1, "b", "f"), args(1, `{"x":2}`), begin(2, "c", "g"), args(2, `{}`), calls),
			want: outcome{Calls: `a f {"x":1} | b f {"x":2} | c g {}`, Finish: core.FinishToolCalls}},
		{name: "interleaved tool calls", scene: play(begin(0, "a", "f"), begin(1, "b", "g"), args(1, `{"y"`), args(0, `{"x"`), args(1, `:2}`), args(0, `:1}`), calls),
			want: outcome{Calls: `a f {"x":1} | b g {"y":2}`, Finish: core.FinishToolCalls}},
		{name: "empty arguments", scene: play(begin(0, "a", "now"), calls), want: outcome{Calls: "a now ", Finish: core.FinishToolCalls}},
		{name: "arguments byte for byte, big numbers", scene: play(begin(0, "a", "f"), args(0, exact[:20]), args(0, exact[20:]), calls),
			want: outcome{Calls: "a f " + exact, Finish: core.FinishToolCalls}},
		{name: "arguments that are no JSON", scene: play(begin(0, "a", "f"), args(0, `{"x": tru`), calls),
			want: outcome{Calls: `a f {"x": tru`, Finish: core.FinishToolCalls}},
		{name: "arguments cut by max_tokens", scene: play(begin(0, "a", "f"), args(0, `{"x": [1,`), end(core.FinishLength)),
			want: outcome{Calls: `a f {"x": [1,`, Finish: core.FinishLength}},
	}
}

func thoughts() []scenario {
	return []scenario{
		{name: "thinking", with: settings{thinking: 2_048}, scene: play(think("hm"), think(" …"), piece{signature: "sig"}, text("42"), stop),
			want: outcome{Reasoning: "hm …", Text: "42", Finish: core.FinishStop}},
		{name: "thinking that is not shown", with: settings{thinking: 2_048}, scene: play(piece{redacted: "data"}, text("42"), stop),
			want: outcome{Text: "42", Finish: core.FinishStop}},
		{name: "thinking with tools, signatures there and back", with: settings{thinking: 2_048},
			req: llm.Request{Tools: []llm.ToolSpec{{Name: "f"}}, Messages: []llm.Message{{Role: core.RoleUser, Content: "hi"}}},
			scene: func(s *stage) {
				if s.n == 1 {
					s.say(think("I need f"), piece{signature: "sig-1"}, piece{redacted: "hidden"}, text("Wait."), think("so"), piece{signature: "sig-2"}, text("Now."), begin(0, "a", "f"), args(0, "{}"), end(core.FinishToolCalls))
					return
				}
				s.say(text("done"), stop)
			},
			drive: roundTrip, want: outcome{Text: "done", Finish: core.FinishStop, Requests: 2}},
		{name: "thoughts of another model are dropped", with: settings{thinking: 2_048},
			req: llm.Request{Tools: []llm.ToolSpec{{Name: "f"}}, Messages: []llm.Message{
				{Role: core.RoleUser, Content: "hi"},
				{Role: core.RoleAssistant, Parts: []core.Part{
					{Type: "reasoning", Text: "foreign thought", Signature: "foreign", Origin: "anthropic/claude-of-before"},
					{Type: "reasoning", Text: "unsigned thought"},
				}, ToolCalls: []core.ToolCall{{ID: "a", Name: "f", Signature: "foreign call"}}},
				{Role: core.RoleTool, ToolCallID: "a", ToolName: "f", Content: "1"},
			}},
			scene: play(text("ok"), stop),
			drive: func(ctx context.Context, t *testing.T, c *caller) outcome {
				o := c.call(ctx, nil)
				body := string(c.server.Received()[0].Body)
				for _, word := range []string{"foreign", "thought", `"thinking"`} {
					if strings.Contains(body, word) {
						o.Note += word + " was sent: " + body
					}
				}
				return o
			},
			want: outcome{Text: "ok", Finish: core.FinishStop}},
	}
}

// roundTrip sends the answer to the first call back with the result of its tool
// call, through the types of the log.
func roundTrip(ctx context.Context, t *testing.T, c *caller) outcome {
	res, err := llm.Collect(c.model.Stream(ctx, c.req), nil)
	if err != nil {
		return seen(res, err)
	}
	c.req.Messages = append(c.req.Messages,
		llm.Message{Role: core.RoleAssistant, Content: res.Text, Parts: res.Parts, ToolCalls: res.ToolCalls},
		llm.Message{Role: core.RoleTool, ToolCallID: "a", ToolName: "f", Content: "result"})
	o := c.call(ctx, nil)
	got := c.server.Received()[1].Body
	want := map[string]string{
		"anthropic": `{"content":[{"signature":"sig-1","thinking":"I need f","type":"thinking"},{"data":"hidden","type":"redacted_thinking"},` +
			`{"text":"Wait.","type":"text"},{"signature":"sig-2","thinking":"so","type":"thinking"},{"text":"Now.","type":"text"},{"id":"a","input":{},"name":"f","type":"tool_use"}],"role":"assistant"}`,
		"responses": `{"id":"item_0","summary":[{"text":"I need f","type":"summary_text"}],"encrypted_content":"sig-1","type":"reasoning"},` +
			`{"id":"item_1","summary":[],"encrypted_content":"hidden","type":"reasoning"},` +
			`{"content":[{"annotations":[],"text":"Wait.","type":"output_text"}],"role":"assistant","type":"message"},` +
			`{"id":"item_3","summary":[{"text":"so","type":"summary_text"}],"encrypted_content":"sig-2","type":"reasoning"},` +
			`{"content":[{"annotations":[],"text":"Now.","type":"output_text"}],"role":"assistant","type":"message"},` +
			`{"arguments":"{}","call_id":"a","name":"f","type":"function_call"},{"output":"result","call_id":"a","type":"function_call_output"}`,
	}[c.server.dialect.name]
	switch {
	case want == "" && strings.Contains(string(got), "I need f"):
		o.Note = "reasoning was sent back: " + string(got)
	case !strings.Contains(string(got), want):
		o.Note = "the thoughts did not go back as they came: " + string(got)
	}
	return o
}
