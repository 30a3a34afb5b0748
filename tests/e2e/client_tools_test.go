package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// newClientTools starts a Bobbin whose model calls the tools that a message names, and returns
// the provider, which keeps what it received.
func newClientTools(t *testing.T, url string) (*apptest.Bobbin, *provider.Server) {
	t.Helper()
	arguments := map[string]string{"calculator": `{"expression": "6*7"}`, "current_time": `{}`, "lookup": `{"name":"Ada"}`, "weather": `{`}
	p := apptest.NewProvider(t, provider.Options{Record: true, Calls: func(r provider.Received) []provider.Call {
		last := r.Messages[len(r.Messages)-1]
		var calls []provider.Call
		for _, word := range strings.Fields(last.Text) {
			if a, ok := arguments[word]; ok && last.Role == "user" {
				calls = append(calls, provider.Call{ID: "call_" + word, Name: word, Arguments: a})
			}
		}
		return calls
	}})
	return apptest.New(t, url, apptest.WithModel("house", 32_000, 2048, p), withAgentFile(t, "careful", `model: house
tools: [calculator, current_time]
tool_settings:
  calculator: {approval: always}
`)), p
}

func clientTools() *core.RunOptions {
	return &core.RunOptions{Instructions: "Be brief.", Tools: []core.ClientTool{lookup, {Name: "weather"}}}
}

// waitsForTools is waitsFor with the client's tools.
func waitsForTools(t *testing.T, h *apptest.Bobbin, id core.SessionID, content string, tools ...core.ClientTool) core.Run {
	t.Helper()
	options := clientTools()
	options.Tools = tools
	got, err := h.SendAndWait(t.Context(), core.SendMessage{SessionID: id, Content: content, Options: options})
	if err != nil || got.Run.Status != core.RunWaiting {
		t.Fatalf("%q: got the run %s, %v, want it waiting", content, got.Run.Status, err)
	}
	return must.Get(client.Call(t.Context(), h, ops.GetRun, ops.InRun{RunID: got.Run.ID}))(t)
}

// questions returns what a run waits for.
func questions(run core.Run) []string {
	var out []string
	for _, a := range run.Approvals {
		out = append(out, string(a.Kind)+" "+a.Tool+" "+a.Arguments)
	}
	slices.Sort(out)
	return out
}

// approvalOf returns the question of the run about a tool.
func approvalOf(t *testing.T, run core.Run, tool string) core.ApprovalID {
	t.Helper()
	for _, a := range run.Approvals {
		if a.Tool == tool {
			return a.ID
		}
	}
	t.Fatalf("the run asks %v, want the tool %s", questions(run), tool)
	return ""
}

// A request of /v1 that has results of tools only may be repeated with its key; another one with the
// key is refused, also when its results are those of the first.
func TestKeyOfToolResults(t *testing.T) {
	t.Parallel()
	h, _ := newClientTools(t, dbtest.MigratedSQLiteURL(t))
	const question = `{"model":"careful","tools":[{"type":"function","function":{"name":"lookup"}}],"messages":[{"role":"user","content":"use lookup"}`
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
		if a := result("in London", ""); a.status != http.StatusOK || a.ID != first.ID || a.text == first.text {
			t.Errorf("got %d %s, want the answer of the run %s", a.status, a.text, first.ID)
		}
	}
	for _, a := range []foreignAnswer{result("in Paris", ""), result("in London", `,"temperature":0.5`)} {
		if a.Error.Code != core.CodeKeyReused {
			t.Errorf("another request with the key: got %d %s, want %s", a.status, a.text, core.CodeKeyReused)
		}
	}
}

func decideOne(t *testing.T, h *apptest.Bobbin, run core.Run, tool string, in ops.Decision) {
	t.Helper()
	in.RunID, in.ApprovalID = run.ID, approvalOf(t, run, tool)
	if _, err := client.Call(t.Context(), h, ops.DecideApproval, in); err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
}

// lookup is a tool of a client.
var lookup = core.ClientTool{Name: "lookup", Description: "Finds a person", Parameters: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`), Strict: new(true)}

// What options may not say, and what a model does not take, is refused by name, and nothing runs.
func TestRunOptionsAreChecked(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 8_000, 1_024, p), withClaude("claude", "claude-sonnet-4-5", p),
		withAgentFile(t, "plain", "model: house\ntools: [calculator]\n"), withAgentFile(t, "spare", "model: house\nfallback_models: [claude]\n"), withAgentFile(t, "bare", "model: house\n"))
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
		_, err := h.SendAsync(t.Context(), core.SendMessage{SessionID: id, Content: "hello", Model: c.model, Options: &c.options})
		wantProblem(t, err, core.ErrInvalid, http.StatusUnprocessableEntity, c.says)
		if err == nil {
			t.Error(name)
		}
	}
	id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "spare"})
	apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "a fallback leaves out a seed", Options: &core.RunOptions{ModelParameters: core.ModelParameters{Seed: new(1)}}})
}
