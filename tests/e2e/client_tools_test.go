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
	return apptest.Must(client.Call(t.Context(), h, ops.GetRun, ops.InRun{RunID: got.Run.ID}))(t)
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
