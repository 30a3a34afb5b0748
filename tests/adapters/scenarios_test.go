package adapters_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// scenario is one thing that can happen in a model call.
type scenario struct {
	name  string
	with  settings
	req   llm.Request                                                // zero = "hi"
	scene func(*stage)                                               // what the provider does
	drive func(ctx context.Context, t *testing.T, c *caller) outcome // zero = call once
	want  outcome
}

// outcome is what the caller sees.
type outcome struct {
	Text       string
	Reasoning  string
	Calls      string
	Finish     core.FinishReason
	Usage      *core.Usage
	Kind       llm.ErrorKind
	Status     int
	Limit      int
	Requested  int
	RetryAfter time.Duration
	Cause      string // the context's: canceled, deadline
	Says       string // of an error: a part of its message; compared only if wanted
	Requests   int    // that the provider got; compared only if wanted
	Note       string // what else a scenario finds
}

// caller calls one model and looks at what comes.
type caller struct {
	server *server
	model  llm.Model
	req    llm.Request
}

// call calls the model once.
func (c *caller) call(ctx context.Context, onDelta func(llm.Delta)) outcome {
	res, err := llm.Collect(c.model.Stream(ctx, c.req), onDelta)
	return seen(res, err)
}

func seen(res llm.Response, err error) outcome {
	o := outcome{Text: res.Text, Reasoning: res.Reasoning, Finish: res.Finish, Usage: res.Usage}
	var calls []string
	for _, c := range res.ToolCalls {
		calls = append(calls, c.ID+" "+c.Name+" "+c.Arguments)
	}
	o.Calls = strings.Join(calls, " | ")
	if err == nil {
		return o
	}
	e := llm.AsError(err)
	if e == nil {
		o.Note = fmt.Sprintf("not an *llm.Error: %v", err)
		return o
	}
	o.Kind, o.Status, o.Limit, o.Requested, o.RetryAfter, o.Says = e.Kind, e.Status, e.Limit, e.Requested, e.RetryAfter, e.Message
	switch {
	case errors.Is(err, context.DeadlineExceeded) && e.Kind == llm.KindCanceled:
		o.Cause = "deadline"
	case errors.Is(err, context.Canceled):
		o.Cause = "canceled"
	}
	if !errors.Is(err, core.ErrModel) {
		o.Note = "not a core.ErrModel"
	}
	return o
}

// play plays the scenario in the dialect and returns how the outcome differs from
// the one wanted; "" = not at all.
func (sc scenario) play(t *testing.T, d dialect) string {
	t.Helper()
	var diff string
	synctest.Test(t, func(t *testing.T) {
		server := start(t, d, sc.scene)
		c := &caller{server: server, model: server.model(t, sc.with), req: sc.req}
		if len(c.req.Messages) == 0 {
			c.req.Messages = []llm.Message{{Role: core.RoleUser, Content: "hi"}}
		}
		var got outcome
		if sc.drive != nil {
			got = sc.drive(t.Context(), t, c)
		} else {
			got = c.call(t.Context(), nil)
		}
		if d.cloud.signs { // the key is no secret there
			got.Says = strings.ReplaceAll(got.Says, key, "***")
		}
		if strings.Contains(got.Says, key) {
			got.Note += "the key is in the error"
		}
		switch {
		case sc.want.Says == "":
			got.Says = ""
		case strings.Contains(got.Says, sc.want.Says):
			got.Says = sc.want.Says
		}
		if sc.want.Requests > 0 {
			got.Requests = len(server.Received())
		}
		diff = cmp.Diff(sc.want, got)
	})
	return diff
}

// TestScenarios: whatever a provider does, the caller of either adapter sees the
// same (W13).
func TestScenarios(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios() {
		for _, d := range dialects() {
			t.Run(sc.name+"/"+d.label(), func(t *testing.T) {
				t.Parallel()
				if diff := sc.play(t, d); diff != "" {
					t.Errorf("outcome (-want +got):\n%s", diff)
				}
			})
		}
	}
}

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

// whileSaying calls the model and cancels as soon as a delta came.
func whileSaying(ctx context.Context, _ *testing.T, c *caller) outcome {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return c.call(ctx, func(llm.Delta) { cancel() })
}

// within calls the model with a deadline.
func within(limit time.Duration) func(context.Context, *testing.T, *caller) outcome {
	return func(ctx context.Context, _ *testing.T, c *caller) outcome {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return c.call(ctx, nil)
	}
}

func endings() []scenario {
	hang := func(pieces ...piece) func(*stage) {
		return func(s *stage) {
			s.say(pieces...)
			s.hang()
		}
	}
	short := settings{timeouts: providerhttp.Timeouts{Headers: 5 * time.Second, Idle: 7 * time.Second}}
	return []scenario{
		{name: "cancel before the headers", scene: func(s *stage) { s.hang() },
			drive: func(ctx context.Context, _ *testing.T, c *caller) outcome {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Second, cancel)
				return c.call(ctx, nil)
			}, want: outcome{Kind: llm.KindCanceled, Cause: "canceled"}},
		{name: "cancel before the call", scene: hang(), drive: func(ctx context.Context, _ *testing.T, c *caller) outcome {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(fmt.Errorf("enough: %w", context.Canceled))
			o := c.call(ctx, nil)
			o.Note = fmt.Sprint(len(c.server.Received()))
			return o
		}, want: outcome{Kind: llm.KindCanceled, Cause: "canceled", Says: "enough", Note: "0"}},
		{name: "cancel in the middle of the text", scene: hang(text("Hel")), drive: whileSaying,
			want: outcome{Text: "Hel", Kind: llm.KindCanceled, Cause: "canceled"}},
		{name: "cancel in the middle of a tool call", scene: hang(begin(0, "a", "f"), args(0, `{"x"`)), drive: func(ctx context.Context, _ *testing.T, c *caller) outcome {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return c.call(ctx, func(d llm.Delta) {
				if d.ToolCall != nil && d.ToolCall.Arguments != "" {
					cancel()
				}
			})
		}, want: outcome{Calls: `a f {"x"`, Kind: llm.KindCanceled, Cause: "canceled"}},
		{name: "deadline before the headers", scene: func(s *stage) { s.hang() }, drive: within(time.Second),
			want: outcome{Kind: llm.KindCanceled, Cause: "deadline"}},
		{name: "deadline in the middle of the text", scene: hang(text("Hel")), drive: within(time.Second),
			want: outcome{Text: "Hel", Kind: llm.KindCanceled, Cause: "deadline"}},
		{name: "the caller leaves", scene: hang(text("a"), text("b")), drive: func(ctx context.Context, _ *testing.T, c *caller) outcome {
			for d, err := range c.model.Stream(ctx, c.req) {
				if err != nil {
					return seen(llm.Response{}, err)
				}
				return outcome{Text: d.Text}
			}
			return outcome{}
		}, want: outcome{Text: "a"}},
		{name: "truncated text", scene: play(text("Hel")), want: outcome{Text: "Hel", Kind: llm.KindTruncated}},
		{name: "truncated tool call", scene: play(begin(0, "a", "f"), args(0, `{"x"`)), want: outcome{Calls: `a f {"x"`, Kind: llm.KindTruncated}},
		{name: "truncated before anything was said", scene: play(piece{ping: true}), want: outcome{Kind: llm.KindTruncated}},
		{name: "connection lost in the middle", scene: func(s *stage) {
			s.say(text("Hel"))
			panic(http.ErrAbortHandler)
		}, want: outcome{Text: "Hel", Kind: llm.KindTruncated}},
		{name: "half an event", scene: func(s *stage) {
			s.say(text("Hel"))
			s.raw(`data: {"type":"content_block_delta","choi` + "\n\n")
		}, want: outcome{Text: "Hel", Kind: llm.KindTruncated}},
		{name: "an error in the middle of the stream", scene: play(text("Hel"), piece{failure: "overloaded_error"}),
			want: outcome{Text: "Hel", Kind: llm.KindOverloaded, Says: "it failed"}},
		{name: "an error at the beginning of the stream", scene: play(piece{failure: "rate_limit_error"}),
			want: outcome{Kind: llm.KindRateLimit, Says: "it failed"}},
		{name: "no network", scene: play(), drive: func(ctx context.Context, t *testing.T, c *caller) outcome {
			c.server.Transport.DialContext = nil
			broken := llmtest.Transport(func(*http.Request) (*http.Response, error) { return nil, errors.New("no route to host " + key) })
			m := must.Get(c.server.dialect.open(broken, settings{}))(t)
			c.model = m
			return c.call(ctx, nil)
		}, want: outcome{Kind: llm.KindNetwork, Says: "was not reached: no route to host"}},
		{name: "a web page instead of an answer", scene: func(s *stage) { s.raw("<html>Sign in</html>") },
			want: outcome{Kind: llm.KindUnknown, Says: "is the base_url right?"}},
		{name: "a huge line", scene: func(s *stage) {
			s.say(text("a"))
			s.raw("data: " + strings.Repeat("x", providerhttp.MaxLine+10))
		}, want: outcome{Text: "a", Kind: llm.KindUnknown, Says: "larger than 8 MiB"}},
		{name: "no headers in time", with: short, scene: func(s *stage) { s.hang() },
			want: outcome{Kind: llm.KindTimeout, Says: "no answer within 5s"}},
		{name: "a stream that stands still", with: short, scene: hang(text("Hel")),
			want: outcome{Text: "Hel", Kind: llm.KindTimeout, Says: "nothing more came within 7s"}},
		{name: "a slow stream", with: short, scene: func(s *stage) {
			for range 10 {
				s.say(text("."))
				s.pause(6 * time.Second)
			}
			s.say(stop)
		}, want: outcome{Text: "..........", Finish: core.FinishStop}},
	}
}

func refusals() []scenario {
	refuse := func(status int, word, sentence string, header ...string) func(*stage) {
		return func(s *stage) { s.refuse(status, word, sentence, header...) }
	}
	refused := func(status int, kind llm.ErrorKind, says string) outcome {
		return outcome{Kind: kind, Status: status, Says: says}
	}
	limited := refused(429, llm.KindRateLimit, "slow down")
	limited.RetryAfter = 17 * time.Second
	dated := refused(429, llm.KindRateLimit, "slow down")
	dated.RetryAfter = 90 * time.Second
	tooLong := refused(400, llm.KindContextLength, "")
	tooLong.Limit, tooLong.Requested = 8_192, 9_000
	return []scenario{
		{name: "400", scene: refuse(400, "invalid_request_error", "no such field"), want: refused(400, llm.KindInvalid, "no such field")},
		{name: "401", scene: refuse(401, "authentication_error", "wrong key "+key), want: refused(401, llm.KindAuth, "wrong key ***")},
		{name: "403", scene: refuse(403, "permission_error", "not for you"), want: refused(403, llm.KindAuth, "not for you")},
		{name: "404", scene: refuse(404, "not_found_error", "no such model"), want: refused(404, llm.KindNotFound, "no such model")},
		{name: "413", scene: refuse(413, "request_too_large", "too many bytes"), want: refused(413, llm.KindContextLength, "too many bytes")},
		{name: "429 with Retry-After", scene: refuse(429, "rate_limit_error", "slow down", "Retry-After", "17"), want: limited},
		{name: "429 with a date", scene: func(s *stage) {
			s.refuse(429, "rate_limit_error", "slow down", "Retry-After", time.Now().Add(90*time.Second).UTC().Format(http.TimeFormat))
		}, want: dated},
		{name: "500", scene: refuse(500, "api_error", "broken"), want: refused(500, llm.KindOverloaded, "broken")},
		{name: "529", scene: refuse(529, "overloaded_error", "busy"), want: refused(529, llm.KindOverloaded, "busy")},
		{name: "302", scene: refuse(302, "", "", "Location", "http://elsewhere.test/"), want: refused(302, llm.KindNotFound, "it redirects to http://elsewhere.test/")},
		{name: "context length with its limit", scene: func(s *stage) { s.refuse(400, "invalid_request_error", s.dialect.tooLong) }, want: tooLong},
		{name: "repeated by us alone", scene: func(s *stage) {
			if s.n < 3 {
				s.refuse(529, "overloaded_error", "busy")
				return
			}
			s.say(text("at last"), stop)
		}, drive: func(ctx context.Context, _ *testing.T, c *caller) outcome {
			c.model = llm.WithRetry(c.model, slog.New(slog.DiscardHandler))
			return c.call(ctx, nil)
		}, want: outcome{Text: "at last", Finish: core.FinishStop, Requests: 3}},
	}
}
