package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// waitsFor sends a message with the client's tools, and returns its run, which waits.
func waitsFor(t *testing.T, h *apptest.Bobbin, id core.SessionID, content string) core.Run {
	t.Helper()
	return waitsForTools(t, h, id, content, clientTools().Tools...)
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
	run, err := h.Run(t.Context(), got.Run.ID)
	if err != nil {
		t.Fatal(err)
	}
	return run
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

// Calls of a client's tools wait for their results; tools of the server run meanwhile, or wait
// for their own approvals. The options outlive a restart.
func TestClientTools(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		h, p := newClientTools(t, url)
		id := apptest.NewSession(t, h.Client, core.Session{Agent: "careful"})
		run := waitsFor(t, h, id, "use lookup and calculator and current_time and weather")
		want := []string{`approval calculator {"expression": "6*7"}`, `client_tool lookup {"name":"Ada"}`, `client_tool weather {`}
		if diff := cmp.Diff(want, questions(run)); diff != "" {
			t.Errorf("questions (-want +got):\n%s", diff)
		}
		if log := apptest.ListMessages(t, h.Client, id); len(log) != 3 || log[2].ToolName != "current_time" {
			t.Errorf("got %d messages while it waits, want the question, the calls and the time", len(log))
		}
		report, err := h.Context(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		view, err := h.Prompt(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		h.Restart()
		decideOne(t, h, run, "lookup", core.ApprovalDecision{Result: new("in London")})
		decideOne(t, h, run, "lookup", core.ApprovalDecision{Result: new("in London")}) // again
		_, err = h.Decide(t.Context(), run.ID, approvalOf(t, run, "lookup"), core.ApprovalDecision{Result: new("in Paris")})
		wantProblem(t, err, core.ErrConflict, http.StatusConflict, "it was answered by local")
		decideOne(t, h, run, "weather", core.ApprovalDecision{Result: new("no arguments"), IsError: true})
		decideOne(t, h, run, "calculator", core.ApprovalDecision{Approve: true, Arguments: `{"expression":"6*8"}`})
		wantEnd(t, h, run.ID, core.RunSucceeded, "current_time: "+apptest.ListMessages(t, h.Client, id)[2].Content,
			"lookup: in London", "calculator: [A person changed the arguments of this call to {\"expression\":\"6*8\"}]\n48", "weather: no arguments")
		last := p.Received()[len(p.Received())-1]
		if len(last.Tools) != 4 || !strings.HasSuffix(strings.Join(last.System, "|"), "Be brief.") {
			t.Errorf("after the restart: got the tools %v and the system prompt %q, want those of the options, too", last.Tools, last.System)
		}
		if got := strings.Join(view.System, "\n\n"); got != strings.Join(last.System, "\n\n") || len(view.Tools) != 4 || view.Tools[2].Name != last.Tools[2].Name {
			t.Errorf("the prompt shown while it waits has the system %q and %d tools, want %q and 4", got, len(view.Tools), last.System)
		}
		for _, m := range apptest.ListMessages(t, h.Client, id) {
			if m.ToolName == "weather" && m.Status != core.MessageFailed || m.ToolName == "lookup" && m.Status != core.MessageComplete {
				t.Errorf("the result of %s is %s", m.ToolName, m.Status)
			}
		}
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "thank you"})
		plain, err := h.Context(t.Context(), id)
		if before, after := sectionTokens(report, "tools"), sectionTokens(plain, "tools"); err != nil || before <= after {
			t.Errorf("the report counts %d tokens of tools with the client's and %d without, want more with them (%v)", before, after, err)
		}
		if before, after := sectionTokens(report, "system"), sectionTokens(plain, "system"); before <= after {
			t.Errorf("the report counts %d tokens of the system with the instructions and %d without, want more with them", before, after)
		}
	})
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

// sectionTokens returns the tokens of a section of a report.
func sectionTokens(r core.ContextReport, name string) int {
	for _, s := range r.Sections {
		if s.Name == name {
			return s.Tokens
		}
	}
	return 0
}

func decideOne(t *testing.T, h *apptest.Bobbin, run core.Run, tool string, d core.ApprovalDecision) {
	t.Helper()
	if _, err := h.Decide(t.Context(), run.ID, approvalOf(t, run, tool), d); err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
}
