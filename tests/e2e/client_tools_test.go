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
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
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
