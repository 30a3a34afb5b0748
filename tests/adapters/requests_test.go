package adapters_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// sent looks into the request that the provider got.
func sent(check func(d dialect, body map[string]any) string) func(context.Context, *testing.T, *caller) outcome {
	return func(ctx context.Context, _ *testing.T, c *caller) outcome {
		o := c.call(ctx, nil)
		var body map[string]any
		if err := json.Unmarshal(c.server.Received()[0].Body, &body); err != nil {
			o.Note = "the request is no JSON: " + err.Error()
			return o
		}
		o.Note = check(c.server.dialect, body)
		return o
	}
}

var answered = outcome{Text: "ok", Finish: core.FinishStop}

func requests() []scenario {
	ok := play(text("ok"), stop)
	user := func(s string) llm.Message { return llm.Message{Role: core.RoleUser, Content: s} }
	tools := []llm.ToolSpec{{Name: "f", Description: "does f"}}
	return []scenario{
		{name: "tool_choice none", req: llm.Request{Tools: tools, ToolChoice: core.ToolChoiceNone, Messages: []llm.Message{user("hi")}}, scene: ok,
			drive: sent(func(d dialect, body map[string]any) string {
				want := map[string]string{"langchain": `"none"`, "anthropic": `{"type":"none"}`, "responses": `"none"`}[d.name]
				if got := toJSON(body["tool_choice"]); got != want || len(body["tools"].([]any)) != 1 {
					return "got " + got + " with tools " + toJSON(body["tools"]) + ", want " + want + " and the tools as ever"
				}
				return ""
			}), want: answered},
		{name: "tool_choice required, one call at most, strict", req: llm.Request{Tools: []llm.ToolSpec{{Name: "f", Strict: new(true)}}, ToolChoice: core.ToolChoiceRequired,
			ParallelToolCalls: new(false), Messages: []llm.Message{user("hi")}}, scene: ok, drive: sent(func(d dialect, body map[string]any) string {
			want := map[string]string{
				"langchain": `"required" false [{"function":{"name":"f","parameters":{"properties":{},"type":"object"},"strict":true},"type":"function"}]`,
				"anthropic": `{"disable_parallel_tool_use":true,"type":"any"} null [{"cache_control":{"type":"ephemeral"},"input_schema":{"properties":{},"type":"object"},"name":"f","strict":true}]`,
				"responses": `"required" false [{"name":"f","parameters":{"properties":{},"type":"object"},"strict":true,"type":"function"}]`,
			}[d.name]
			if got := toJSON(body["tool_choice"]) + " " + toJSON(body["parallel_tool_calls"]) + " " + toJSON(body["tools"]); got != want {
				return "got " + got + ", want " + want
			}
			return ""
		}), want: answered},
		{name: "tool_choice of one tool", req: llm.Request{Tools: tools, ToolChoice: "f", ParallelToolCalls: new(true), Messages: []llm.Message{user("hi")}}, scene: ok,
			drive: sent(func(d dialect, body map[string]any) string {
				want := map[string]string{"langchain": `{"function":{"name":"f"},"type":"function"} true`, "anthropic": `{"name":"f","type":"tool"} null`,
					"responses": `{"name":"f","type":"function"} true`}[d.name]
				if got := toJSON(body["tool_choice"]) + " " + toJSON(body["parallel_tool_calls"]); got != want {
					return "got " + got + ", want " + want
				}
				return ""
			}), want: answered},
		{name: "the system prompt in its place only", req: llm.Request{System: []string{"Be kind.", "", "Summary."}, Messages: []llm.Message{
			{Role: core.RoleSystem, Content: "of the log"}, user("hi"),
		}}, scene: ok, drive: sent(func(d dialect, body map[string]any) string {
			messages := toJSON(body[d.messages])
			want := `[{"content":"Be kind.\n\nSummary.","role":"system"},{"content":"hi","role":"user"}]`
			if d.name == "anthropic" {
				want = `[{"content":[{"text":"hi","type":"text"}],"role":"user"}]`
				if got := texts(body["system"]); got != "Be kind.|Summary." {
					return "got the system blocks " + got
				}
			}
			if d.name == "responses" {
				want = `[{"content":[{"text":"hi","type":"input_text"}],"role":"user"}]`
				if got := body["instructions"]; got != "Be kind.\n\nSummary." {
					return fmt.Sprintf("got the instructions %q", got)
				}
			}
			if messages != want {
				return "got " + messages + ", want " + want
			}
			return ""
		}), want: answered},
		{name: "results in the order of the calls, roles that alternate", req: llm.Request{Tools: tools, Messages: []llm.Message{
			user("one"), user("two"),
			{Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}, {ID: "b", Name: "f", Arguments: "{}"}}},
			{Role: core.RoleTool, ToolCallID: "a", ToolName: "f", Content: "first"},
			{Role: core.RoleTool, ToolCallID: "b", ToolName: "f", Content: "second"},
			user("and?"),
		}}, scene: ok, drive: sent(func(d dialect, body map[string]any) string {
			raw := toJSON(body[d.messages])
			if first, second := strings.Index(raw, "first"), strings.Index(raw, "second"); first < 0 || second < first {
				return "got " + raw
			}
			want := map[string]string{"anthropic": "user assistant user", "langchain": "user assistant tool tool assistant user",
				"responses": "user user function_call function_call function_call_output function_call_output user"}[d.name]
			if roles := roles(body[d.messages]); roles != want || !strings.Contains(raw, "one") || !strings.Contains(raw, "two") { // L5
				return "got the roles " + roles + " in " + raw
			}
			return ""
		}), want: answered},
		{name: "no tools: tool turns become text or stay", req: llm.Request{Messages: []llm.Message{
			user("hi"), {Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}}},
			{Role: core.RoleTool, ToolCallID: "a", ToolName: "f", Content: "result of f"}, user("and?"),
		}}, scene: ok, drive: sent(func(d dialect, body map[string]any) string {
			if raw := toJSON(body[d.messages]); !strings.Contains(raw, "result of f") || d.name == "anthropic" && strings.Contains(raw, "tool_use") {
				return "got " + raw
			}
			return ""
		}), want: answered},
		{name: "the key in its header only", req: llm.Request{Messages: []llm.Message{user("hi")}}, scene: ok,
			drive: func(ctx context.Context, _ *testing.T, c *caller) outcome {
				o := c.call(ctx, nil)
				r := c.server.Received()[0]
				header := map[string]string{"langchain": "Authorization", "anthropic": "X-Api-Key", "responses": "Authorization"}[c.server.dialect.name]
				path := map[string]string{"langchain": "/v1/chat/completions", "anthropic": "/v1/messages", "responses": "/v1/responses"}[c.server.dialect.name]
				if want := c.server.dialect.cloud; want.name != "" {
					header, path = "Authorization", want.path
				}
				if c.server.dialect.cloud.signs && strings.Contains(r.Header.Get(header), awsSecret) {
					o.Note = "the secret is in the header"
				} else if !c.server.dialect.cloud.signs && strings.TrimPrefix(r.Header.Get(header), "Bearer ") != key || strings.Contains(string(r.Body), key) || r.Path != path {
					o.Note = fmt.Sprintf("got the key in %q, path %s, body %s", header, r.Path, r.Body)
				}
				return o
			}, want: answered},
		{name: "50 calls at once", req: llm.Request{Messages: []llm.Message{user("hi")}}, scene: func(s *stage) {
			question := between(string(s.body), "question ", ".")
			s.say(text("answer "), text(question), begin(0, "id"+question, "f"), args(0, `{"n":`), args(0, question+"}"), end(core.FinishToolCalls))
		}, drive: fifty, want: outcome{Requests: 50}},
	}
}

// fifty makes 50 calls at once; each must get its own answer.
func fifty(ctx context.Context, _ *testing.T, c *caller) outcome {
	var group sync.WaitGroup
	var mu sync.Mutex
	var o outcome
	for i := range 50 {
		group.Go(func() {
			req := llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: fmt.Sprintf("question %d.", i)}}}
			got := seen(llm.Collect(c.model.Stream(ctx, req), nil))
			want := outcome{Text: fmt.Sprintf("answer %d", i), Calls: fmt.Sprintf(`id%d f {"n":%d}`, i, i), Finish: core.FinishToolCalls}
			if got != want {
				mu.Lock()
				defer mu.Unlock()
				o.Note += fmt.Sprintf("call %d: got %+v\n", i, got)
			}
		})
	}
	group.Wait()
	return o
}

// between returns what stands between two texts.
func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// texts joins the texts of blocks.
func texts(blocks any) string {
	var out []string
	for _, b := range blocks.([]any) {
		out = append(out, fmt.Sprint(b.(map[string]any)["text"]))
	}
	return strings.Join(out, "|")
}

// roles joins the roles of messages, and the types of items that have none.
func roles(messages any) string {
	var out []string
	for _, m := range messages.([]any) {
		message := m.(map[string]any)
		role, ok := message["role"].(string)
		if !ok {
			role = fmt.Sprint(message["type"])
		}
		out = append(out, role)
	}
	return strings.Join(out, " ")
}

// numbers are what a refusal tells of, in tokens.
type numbers struct{ limit, prompt, output int }

// refusal is a way in which model providers, servers and gateways refuse a request.
type refusal struct {
	name   string
	status int
	body   string // in it {limit}, {prompt}, {output} and {total} stand for the numbers
	clear  bool   // the words tell what is wrong; otherwise only a shorter prompt shows whether it was too long
	limit  bool   // the words tell the limit
}

// text returns the answer's body with the numbers.
func (r refusal) text(n numbers) string {
	return strings.NewReplacer("{limit}", fmt.Sprint(n.limit), "{prompt}", fmt.Sprint(n.prompt),
		"{output}", fmt.Sprint(n.output), "{total}", fmt.Sprint(n.prompt+n.output)).Replace(r.body)
}

// readRefusals returns the columns of the lines of a file of testdata/refusals.
func readRefusals(t *testing.T, name string) (lines [][]string) {
	t.Helper()
	for line := range strings.Lines(string(must.Get(os.ReadFile("testdata/refusals/" + name))(t))) {
		lines = append(lines, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return lines
}

// otherRefusals mean something else than a prompt that is too long. Some of them quote a user who
// speaks of one. What is no JSON is put into an answer.
func otherRefusals(t *testing.T) (list []refusal) {
	t.Helper()
	forms := []string{`{"error":{"message":%s,"type":"invalid_request_error","param":null,"code":null}}`, `{"error":%s}`, `{"message":%s}`}
	for i, c := range readRefusals(t, "others.tsv") {
		r := refusal{name: fmt.Sprintf("%03d %.40s", i, c[1]), status: must.Get(strconv.Atoi(c[0]))(t), body: c[1], clear: true}
		if !json.Valid([]byte(r.body)) {
			r.body = fmt.Sprintf(forms[i%3], must.Get(json.Marshal(r.body))(t))
		}
		list = append(list, r)
	}
	return list
}

// refuse returns the error that an adapter makes of a refusal.
func refuse(t *testing.T, r refusal, n numbers) *llm.Error {
	t.Helper()
	return (&providerhttp.Peer{Provider: "p"}).Refusal(r.status, nil, []byte(r.text(n)))
}

// countsAnswer finds words that count the answer in, or do not say whether they do.
var countsAnswer = regexp.MustCompile(`equested|total|output|completion|max_\w*tokens|\+`)

// Each way in which real servers refuse a prompt that is too long is understood, with
// the numbers that it tells; some of them say nothing at all.
func TestVendorsRefusals(t *testing.T) {
	t.Parallel()
	var list []refusal
	for _, c := range readRefusals(t, "too_long.tsv") { // who, the status, what they say (the limit, that it is too long, or nothing), the body
		list = append(list, refusal{name: c[0], status: must.Get(strconv.Atoi(c[1]))(t), body: c[3], clear: c[2] != "nothing", limit: c[2] == "limit"})
	}
	compare.True(t, len(list) >= 43, "got %d refusals, want the 43 of the review", len(list))
	n := numbers{limit: 8192, prompt: 15_321, output: 1024}
	for _, r := range list {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			e := refuse(t, r, n)
			limit := 0
			if r.limit {
				limit = n.limit
			}
			if got := e.Kind == llm.KindContextLength; got != r.clear || e.Unclear == r.clear {
				t.Errorf("got %s, unclear %v, want clear %v: %s", e.Kind, e.Unclear, r.clear, e.Message)
			}
			requested, prompt := 0, 0 // what was counted, and without the answer as far as the words say so
			switch {
			case !r.limit:
			case strings.Contains(r.body, "{total}"):
				requested = n.prompt + n.output
			case strings.Contains(r.body, "{prompt}"):
				requested = n.prompt
			}
			if !countsAnswer.MatchString(r.body) {
				prompt = requested
			}
			if e.Limit != limit || e.Prompt != prompt || e.Requested != requested {
				t.Errorf("got limit %d, prompt %d, requested %d, want %d, %d, %d: %s", e.Limit, e.Prompt, e.Requested, limit, prompt, requested, r.body)
			}
		})
	}
}

// Refusals for other reasons are not taken for a prompt that is too long, whatever they
// quote; few of them are suspected to be one, which costs a long prompt two calls.
func TestOtherRefusals(t *testing.T) {
	t.Parallel()
	list := otherRefusals(t)
	compare.True(t, len(list) >= 100, "got %d refusals, want at least 100", len(list))
	suspected := 0
	for _, r := range list {
		e := refuse(t, r, numbers{})
		compare.True(t, e.Kind != llm.KindContextLength, "%s: got %s, limit %d: %s", r.name, e.Kind, e.Limit, r.body)
		if e.Unclear {
			suspected++
			t.Logf("%s: suspected: %s", r.name, r.body)
		}
	}
	compare.True(t, suspected <= len(list)/10, "%d of %d refusals are suspected", suspected, len(list))
}
