package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// A request of /v1 that has results of tools only may be repeated with its key; another one with the
// key is refused, also when its results are those of the first.
func TestKeyOfToolResults(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Calls: provider.CallNamed})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("o4-mini", 32_000, 2048, p), apptest.WithAgent("careful", "name: careful\nmodel: o4-mini\n"))
	const question = `{"model":"careful","top_p":0.5,"tools":[{"type":"function","function":{"name":"lookup"}}],"messages":[{"role":"user","content":"call lookup {\"name\":\"Ada\"}"}`
	var asked struct {
		Choices []struct{ Message json.RawMessage }
	}
	var calls struct {
		ToolCalls []struct{ ID string } `json:"tool_calls"`
	}
	first := postForeign(t, h, "chat/completions", question+"]}")
	if err := json.Unmarshal([]byte(first.text), &asked); err != nil || len(asked.Choices) != 1 {
		t.Fatalf("got %s, want calls", first.text)
	}
	if err := json.Unmarshal(asked.Choices[0].Message, &calls); err != nil || len(calls.ToolCalls) != 1 {
		t.Fatalf("got %s, want one call", first.text)
	}
	result := func(text, more string) foreignAnswer {
		body := fmt.Sprintf(`%s,%s,{"role":"tool","tool_call_id":%q,"content":%q}]%s}`, question, asked.Choices[0].Message, calls.ToolCalls[0].ID, text, more)
		return postForeign(t, h, "chat/completions", body, "Idempotency-Key", "k")
	}
	for range 2 {
		if a := result("in London", ""); a.status != http.StatusOK || a.ID != first.ID || a.text == first.text || a.header.Get("X-Bobbin-Ignored") != "top_p" {
			t.Errorf("got %d %s, ignored %q, want the answer of the run %s without top_p", a.status, a.text, a.header.Get("X-Bobbin-Ignored"), first.ID)
		}
	}
	for _, a := range []foreignAnswer{result("in Paris", ""), result("in London", `,"temperature":0.5`)} {
		compare.Equal(t, "another request with the key", core.CodeKeyReused, a.Error.Code)
	}
}

// lookup is a tool of a client.
var lookup = core.ClientTool{Name: "lookup", Description: "Finds a person", Parameters: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`), Strict: new(true)}

// What options may not say, and what a model does not take, is refused by name, and nothing runs.
func TestRunOptionsAreChecked(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 8_000, 1_024, p), withClaude("claude", "claude-sonnet-4-5", p),
		apptest.WithAgent("plain", "name: plain\nmodel: house\ntools: [calculator]\n"), apptest.WithAgent("spare", "name: spare\nmodel: house\nfallback_models: [claude]\n"), apptest.WithAgent("bare", "name: bare\nmodel: house\n"))
	many := make([]core.ClientTool, core.MaxClientTools+1)
	deep := json.RawMessage(strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40))
	for name, c := range map[string]struct {
		agent, model string
		options      core.RunOptions
		says         string
	}{
		"a temperature":     {"plain", "", core.RunOptions{ModelParameters: core.ModelParameters{Temperature: new(3.0)}}, "options.temperature is 3; use 0 to 2"},
		"too many stops":    {"plain", "", core.RunOptions{ModelParameters: core.ModelParameters{Stop: []string{"a", "b", "c", "d", "e"}}}, "options.stop has 5 entries; use at most 4"},
		"an effort":         {"plain", "", core.RunOptions{ModelParameters: core.ModelParameters{ReasoningEffort: "much"}}, `options.reasoning_effort "much" does not exist`},
		"a schema missing":  {"plain", "", core.RunOptions{ModelParameters: core.ModelParameters{ResponseFormat: &core.ResponseFormat{Type: core.FormatJSONSchema}}}, "options.response_format.schema is missing"},
		"a deep schema":     {"plain", "", core.RunOptions{Tools: []core.ClientTool{{Name: "f", Parameters: deep}}}, "options.tools[0].parameters has more than 32 levels"},
		"a large schema":    {"plain", "", core.RunOptions{Tools: []core.ClientTool{{Name: "f", Parameters: json.RawMessage(`{"a":"` + strings.Repeat("x", 70_000) + `"}`)}}}, "bytes; use at most 65536"},
		"a schema's kind":   {"plain", "", core.RunOptions{Tools: []core.ClientTool{{Name: "f", Parameters: json.RawMessage(`[]`)}}}, "options.tools[0].parameters must be a JSON object"},
		"a name":            {"plain", "", core.RunOptions{Tools: []core.ClientTool{{Name: "a b"}}}, `options.tools[0].name "a b" is not allowed`},
		"a name twice":      {"plain", "", core.RunOptions{Tools: []core.ClientTool{{Name: "f"}, {Name: "f"}}}, `options.tools[1].name "f" is there twice`},
		"a collision":       {"plain", "", core.RunOptions{Tools: []core.ClientTool{{Name: "calculator"}}}, `"calculator" is a tool of the agent plain`},
		"too many tools":    {"plain", "", core.RunOptions{Tools: many}, "options.tools has 129 tools, at most 128 are allowed"},
		"too large":         {"plain", "", core.RunOptions{Instructions: strings.Repeat("x", core.MaxRunOptions)}, "options have 262163 bytes as JSON, at most 262144 are allowed"},
		"an unknown tool":   {"plain", "", core.RunOptions{ToolChoice: "nosuch"}, `options.tool_choice "nosuch" is not a tool of this run`},
		"no function":       {"plain", "", core.RunOptions{ToolChoice: "function:"}, `options.tool_choice "function:" is not a tool of this run`},
		"a word's function": {"plain", "", core.RunOptions{ToolChoice: "function:none"}, `options.tool_choice "none" is not a tool of this run`},
		"no tool":           {"bare", "", core.RunOptions{ToolChoice: core.ToolChoiceRequired}, "required needs a tool"},
		"a lacking seed":    {"plain", "claude", core.RunOptions{ModelParameters: core.ModelParameters{Seed: new(1)}}, `the model "claude" does not take seed`},
		"a lacking format":  {"spare", "", core.RunOptions{ModelParameters: core.ModelParameters{ResponseFormat: &core.ResponseFormat{Type: core.FormatJSONObject}}}, `the model "claude" does not take response_format json_object`},
		"both of sampling":  {"plain", "claude", core.RunOptions{ModelParameters: core.ModelParameters{Temperature: new(0.1), TopP: new(0.1)}}, "does not take top_p beside temperature"},
		"broken characters": {"plain", "", core.RunOptions{ToolChoice: "a\x00b"}, "options.tool_choice must be valid UTF-8"},
	} {
		id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: c.agent})
		_, err := apptest.SendAsync(t.Context(), h, core.SendMessage{SessionID: id, Content: "hello", Model: c.model, Options: &c.options})
		wantProblem(t, err, core.ErrInvalid, http.StatusUnprocessableEntity, c.says)
		if err == nil {
			t.Error(name)
		}
	}
	id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "spare"})
	apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "a fallback leaves out a seed", Options: &core.RunOptions{ModelParameters: core.ModelParameters{Seed: new(1)}}})
}

// Results that are sent again after their answer has failed, or after the client has gone away, are answered,
// and so are others in their place. The model reads each result once.
func TestResultsWhoseAnswerFailed(t *testing.T) {
	t.Parallel()
	var down, hold atomic.Bool
	held, release := make(chan struct{}), make(chan struct{})
	p := apptest.NewProvider(t, provider.Options{Record: true, Calls: provider.CallNamed, Fault: func(w http.ResponseWriter, _ provider.Asked) bool {
		if hold.Swap(false) {
			held <- struct{}{}
			<-release
		}
		if down.Load() {
			w.WriteHeader(http.StatusUnauthorized)
		}
		return down.Load()
	}})
	defer close(release)
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 16_000, 1_024, p), apptest.WithAgent("plain", "name: plain\nmodel: house\ntools: [calculator]\n"))
	for name, u := range map[string]*toolUser{
		"chat": {path: "chat/completions"}, "chat in a session": {path: "chat/completions", headers: []string{"X-Session-Id", "s"}}, "response": {path: "responses"},
	} {
		u.t, u.h = t, h
		u.send("", []string{"lookup"}, fmt.Sprintf(`{"role":"user","content":%q}`, "call calculator {\"expression\":\"6*7\"}\ncall lookup {}"))
		results, first, said := u.results(), u.last, slices.Clone(u.said)
		again := func(results []string, options string) foreignAnswer {
			u.said, u.last = slices.Clone(said), first
			return u.send(options, []string{"lookup"}, results...)
		}
		wantAnswer := func(what, result string, a foreignAnswer) {
			t.Helper()
			got := p.Received()
			body := string(got[len(got)-1].Body)
			if a.status != http.StatusOK || !strings.Contains(a.text, "answer to: ") || strings.Count(body, result) != 1 || strings.Count(body, `"role":"tool"`) > 2 || !strings.Contains(body, "Continue with these results.") {
				t.Errorf("%s, %s: got %d %s from the prompt %s", name, what, a.status, a.text, body)
			}
		}
		if u.path != "responses" {
			ctx, goAway := context.WithCancel(t.Context())
			body := fmt.Sprintf(`{"model":"plain","messages":[%s]}`, strings.Join(append(slices.Clone(said), results...), ","))
			r := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, h.URL+"/v1/chat/completions", strings.NewReader(body)))(t)
			r.Header.Set("Content-Type", "application/json")
			for i := 0; i < len(u.headers); i += 2 {
				r.Header.Set(u.headers[i], u.headers[i+1])
			}
			hold.Store(true)
			go func() {
				<-held
				goAway()
			}()
			if answer, err := http.DefaultClient.Do(r); err == nil {
				_ = answer.Body.Close()
				t.Fatalf("%s: got %s, want a client that has gone", name, answer.Status)
			}
			ended(t, h, core.RunID(strings.TrimPrefix(first.ID, "chatcmpl-")))
			wantAnswer("after the client has gone", "sunny", again(results, ""))
		}
		down.Store(true)
		for range 2 {
			if a := again(results, ""); a.status != http.StatusBadGateway {
				t.Errorf("%s: got %d %s, want the provider's failure", name, a.status, a.text)
			}
		}
		down.Store(false)
		session := core.SessionID(first.header.Get("X-Session-Id"))
		if u.path == "responses" { // so much has been said since
			postForeign(t, h, "conversations/conv_"+string(session)+"/items", `{"items":[{"role":"user","content":"later"}`+strings.Repeat(`,{"role":"user","content":"later"}`, core.MaxPageLimit)+`]}`)
		}
		wantAnswer("the same results", "sunny", again(results, ""))
		for i := range results { // of the failed run
			results[i] = strings.ReplaceAll(results[i], "sunny", "rainy")
		}
		wantAnswer("other results", "rainy", again(results, ""))
		for range len(u.headers) { // with a new message they take the place of those in the session, once
			compare.Contains(t, name+": an answer", "answer to: go on", again(append(slices.Clone(results), `{"role":"user","content":"go on"}`), "").text)
			all := ops.MessageList{InSession: ops.InSession{SessionID: session}, MessageQuery: core.MessageQuery{AllBranches: true}}
			compare.Equal(t, name+": results in the log", 1, strings.Count(fmt.Sprint(must.Get(client.Call(t.Context(), h.Client, ops.ListMessages, all))(t).Items), "rainy"))
		}
	}
}

// A client that runs a loop of its own tools has max_iterations for each of its requests.
func TestLoopOfClientKeepsItsTools(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Record: true, Calls: func(r provider.Received) []provider.Call {
		if len(r.Tools) == 0 || r.ToolChoice == "none" {
			return nil
		}
		name := "lookup"
		if len(r.Messages)%4 != 3 && len(r.Tools) > 1 { // a tool of the agent before each of the client's
			name = "calculator"
		}
		return []provider.Call{{ID: fmt.Sprintf("c%d", len(r.Messages)), Name: name, Arguments: `{"expression":"1"}`}}
	}})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 16_000, 1_024, p), apptest.WithAgent("plain", "name: plain\nmodel: house\ntools: [calculator]\nmax_iterations: 3\n"))
	for _, path := range []string{"chat/completions", "responses"} {
		u := toolUser{t: t, h: h, path: path}
		next := []string{`{"role":"user","content":"go"}`}
		for i := range 4 {
			tools := []string{"lookup"}
			if i == 2 { // it says other tools from there on
				tools = append(tools, "final")
			}
			u.send("", tools, next...)
			next = u.results()
			compare.Equal(t, fmt.Sprintf("%s: calls of answer %d", path, i), []string{"lookup"}, u.calls)
		}
	}
}

// toolTalk is a session whose agent's tools change, with a strict provider.
type toolTalk struct {
	*apptest.Bobbin

	t     *testing.T
	model strictProvider
	id    core.SessionID
}

// newToolTalk starts a Bobbin whose agent "helper" has a calculator and the tools of an MCP server.
func newToolTalk(t *testing.T, start func(*testing.T, *provider.Strict) strictProvider, strict provider.Strict) *toolTalk {
	t.Helper()
	strict.Account, strict.Secret, strict.AlwaysThinks = "account", "secret", true
	k := &toolTalk{t: t, model: start(t, &strict)}
	m := k.model.model
	m.Name, m.ContextWindow, m.MaxOutputTokens = "house", 200_000, 8_192
	k.Bobbin = apptest.New(t, dbtest.MigratedSQLiteURL(t), mcpTool(t, "local", ""), func(cfg *config.Config) {
		cfg.Models = append(cfg.Models, m)
		cfg.DefaultLLM = "house"
	}, apptest.WithAgent("helper", toolAgent("calculator")))
	k.id = apptest.NewSession(t, k.Client, ops.NewSession{Agent: "helper"})
	return k
}

// toolAgent returns the file of an agent with the tools and those of the MCP server.
func toolAgent(tools string) string {
	return "name: helper\nsystem_prompt: You help.\ntools: [local, " + tools + "]\ntool_settings: {local__new1: {approval: never}}\n"
}

// changeAgent changes the tools of the agent's file.
func (k *toolTalk) changeAgent(tools string) { changeAgent(k.t, k.Config, "helper", toolAgent(tools)) }

// callTool sends a message that names a tool, and checks that the model calls it.
func (k *toolTalk) callTool(name string) {
	k.t.Helper()
	got := apptest.SendMessage(k.t, k.Client, core.SendMessage{SessionID: k.id, Content: "use the tool " + name})
	if len(got.Messages) != 4 || got.Messages[1].ToolCalls[0].Name != name || strings.Contains(got.Messages[2].Content, "there is no tool") {
		k.t.Errorf("got the messages %+v, want a call of %s", got.Messages, name)
	}
}

// wantKept checks that the provider verified all thoughts that came back, and that the next prompt has all.
func (k *toolTalk) wantKept() {
	k.t.Helper()
	answers := 0
	for _, m := range apptest.ListMessages(k.t, k.Client, k.id) {
		if m.Role == core.RoleAssistant {
			answers++
		}
	}
	if got := k.model.thoughts(); got.Dropped > 0 || got.Refused > 0 || got.Verified == 0 {
		k.t.Errorf("got %+v, want no thought refused or dropped", got)
	}
	if got := contextOf(k.t, k.Client, k.id).Thoughts; got == nil || got.Kept != answers || len(got.Dropped) > 0 {
		k.t.Errorf("got %+v, want all of %d thoughts kept", got, answers)
	}
}

// wantAdded checks that the prompt shown begins with the tools that it had, and has another tool in a message.
func (k *toolTalk) wantAdded(name string) {
	k.t.Helper()
	prompt := must.Get(client.Call(k.t.Context(), k, ops.GetPrompt, ops.InSession{SessionID: k.id}))(k.t)
	isNamed := func(tool core.PromptTool) bool { return tool.Name == name }
	inMessage := slices.ContainsFunc(prompt.Messages, func(m core.PromptMessage) bool { return slices.ContainsFunc(m.AddedTools, isNamed) })
	compare.True(k.t, !slices.ContainsFunc(prompt.Tools, isNamed) && inMessage, "the prompt has the tool %s in a message: %v, want it there alone", name, inMessage)
}

// awaitTool waits until the agent has a tool, or no longer.
func (k *toolTalk) awaitTool(name string, want bool) {
	k.t.Helper()
	process.Await(k.t, fmt.Sprintf("the tools have %s: %v", name, want), func() bool {
		return slices.Contains(must.Get(client.Call(k.t.Context(), k, ops.GetAgent, ops.InAgent{Name: "helper"}))(k.t).Tools, name) == want
	})
}

// The agent's file gets a tool, its MCP server another, a run brings one of its client; a restart takes
// some of them, and the file loses and gets its tool again. No thought is refused or left out, and the model
// may call each tool while it is there.
func TestThoughtsStayValidBehindToolChanges(t *testing.T) {
	t.Parallel()
	for name, start := range strictProviders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newToolTalk(t, start, provider.Strict{})
			say := func() {
				apptest.SendMessage(t, k.Client, core.SendMessage{SessionID: k.id, Content: "go on"})
			}
			say()
			k.changeAgent("calculator, current_time")
			k.callTool("current_time")
			k.wantAdded("current_time")
			k.callTool("local__change")
			k.awaitTool("local__new1", true)
			k.callTool("local__new1")
			asked := must.Get(apptest.SendAndWait(t.Context(), k, core.SendMessage{SessionID: k.id, Content: "use the tool lookup", Options: &core.RunOptions{Tools: []core.ClientTool{lookup}}}))(t)
			run := must.Get(client.Call(t.Context(), k, ops.GetRun, ops.InRun{RunID: asked.Run.ID}))(t)
			decide(t, k.Bobbin, run, ops.Decision{Result: new("in London")})
			wantEnd(t, k.Bobbin, run.ID, core.RunSucceeded, "lookup: in London")
			k.wantKept()
			for _, tools := range []string{`[]`, `[{"type":"function","function":{"name":"other"}}]`} { // instead of lookup, inside the run
				asked = must.Get(apptest.SendAndWait(t.Context(), k, core.SendMessage{SessionID: k.id, Content: "use the tool lookup", Options: &core.RunOptions{Tools: []core.ClientTool{lookup}}}))(t)
				call := strings.ReplaceAll(string(asked.Run.ID), "-", "") + "_" + must.Get(client.Call(t.Context(), k, ops.GetRun, ops.InRun{RunID: asked.Run.ID}))(t).Approvals[0].ToolCallID
				a := postForeign(t, k.Bobbin, "chat/completions", `{"model":"helper","messages":[{"role":"user","content":"go on"},{"role":"tool","tool_call_id":"call_`+call+`","content":"in London"}],"tools":`+tools+`}`)
				compare.Equal(t, "tools "+tools+": "+a.text, http.StatusOK, a.status)
				k.wantKept()
			}
			say()
			k.Restart()
			k.awaitTool("local__write", true)
			say()
			k.changeAgent("calculator")
			say()
			k.changeAgent("current_time, calculator")
			k.callTool("current_time")
			k.wantKept()
		})
	}
}

// A provider that knows no such messages refuses one once: the same run goes on without, the thoughts so far are
// lost and announced, and neither another session nor the next process sends any.
func TestToolChangesThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, start := range strictProviders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newToolTalk(t, start, provider.Strict{RefusesToolChanges: true})
			for range 2 {
				apptest.SendMessage(t, k.Client, core.SendMessage{SessionID: k.id, Content: "go on"})
				k.changeAgent("calculator, current_time")
				k.callTool("current_time")
				report := contextOf(t, k.Client, k.id).Thoughts
				if report == nil || report.Kept != 2 || len(report.Dropped) != 1 || report.Dropped[0].Reason != "changed" || report.Dropped[0].Count != 1 {
					t.Errorf("got %+v, want the first thought lost and announced", report)
				}
				k.changeAgent("calculator")
				k.Restart()
				k.id = apptest.NewSession(t, k.Client, ops.NewSession{Agent: "helper"})
			}
			if got := k.model.thoughts(); got.Refused != 1 || got.Dropped != 0 {
				t.Errorf("got %+v, want one refusal and no thought dropped", got)
			}
		})
	}
}

// A model whose name tells nothing refuses thoughts after a summary changed the prompt: once. From
// then on its contract is known, in all sessions and after a restart.
func TestThoughtsAreRefusedOnce(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Calls: callsInLoops, Strict: &provider.Strict{Account: "account", Secret: "secret", AlwaysThinks: true}})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), func(c *config.Config) {
		c.Models = append(c.Models, config.Model{
			Name: "house", Provider: "anthropic", Model: "claude-latest", BaseURL: p.URL, ThinkingBudget: 2_048,
			ContextWindow: 8_192, MaxOutputTokens: 4_096,
		})
		c.DefaultLLM = "house"
	})
	talk := func() core.SessionID {
		id := apptest.NewSession(t, h.Client, ops.NewSession{Timezone: "Europe/Vienna"})
		w := apptest.NewWriter(5)
		for n := 0; n < 20 || session(t, h.Client, id).SummaryCount == 0; n++ {
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: w.Question(2 * n)})
		}
		return id
	}
	id := talk()
	if got := p.Thoughts(); got.Refused != 1 || got.Dropped > 0 {
		t.Errorf("got %+v in the first session, want one refusal", got)
	}
	if report, err := client.Call(t.Context(), h, ops.GetContext, ops.InSession{SessionID: id}); err != nil || report.Thoughts == nil || report.Thoughts.Contract != "refuses" {
		t.Errorf("got the thoughts %+v in /context, %v", report.Thoughts, err)
	}
	h.Restart()
	before := p.Thoughts().Verified
	talk()
	if got := p.Thoughts(); got.Refused != 1 || got.Dropped > 0 || got.Verified == before {
		t.Errorf("got %+v after a restart and another session, want no other refusal", got)
	}
}
