package conformance_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	apiclient "bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/dbtest"
	"bobbin/tests/process"
)

// runFramework runs a program that uses Bobbin by a framework, and returns what it has seen.
func runFramework(t *testing.T, program string, args ...string) map[string]json.RawMessage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	must(t, err)
	return decode[map[string]json.RawMessage](t, out)
}

// wantSeen compares what the program has seen, as JSON.
func wantSeen(t *testing.T, seen map[string]json.RawMessage, want map[string]string) {
	t.Helper()
	for name, value := range want {
		wantEqual(t, name, string(seen[name]), value)
	}
}

// The AI SDK works with its default provider, which speaks Responses and refers to what it got; a
// conversation is one session.
func TestAISDK(t *testing.T) {
	t.Parallel()
	node := process.FindNodeClients(t)
	b := newBobbin(t, dbtest.MigratedSQLiteURL(t))
	for _, version := range []string{"5", "6"} {
		seen := runFramework(t, node, "aisdk.mjs", version, b.front.url, aliceKey)
		mark := "of the AI SDK " + version
		wantSeen(t, seen, map[string]string{
			"loop":   `["answer to: the weather twice, ` + mark + `",3]`,
			"turn":   `"answer to: And the third, ` + mark + `"`,
			"stream": `"answer to: hello, ` + mark + `"`,
			"object": `{"city":"Bonn","people":340000}`,
			"forced": `["get_weather"]`,
		})
		if failure := string(seen["failure"]); failure == `"none"` || strings.Contains(failure, "Invalid JSON") {
			t.Errorf("a failure reads %s", failure)
		}
		id := decode[core.SessionID](t, seen["session"])
		if got := decode[[]core.SessionID](t, seen["sessions"]); got[1] != id || got[2] != id {
			t.Errorf("the turns were in the sessions %v", got)
		}
		page, err := apiclient.Call(t.Context(), b, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: id}})
		must(t, err)
		wantEqual(t, "messages of the conversation", len(page.Items), 6)
	}
	list, err := apiclient.Call(t.Context(), b, ops.ListSessions, core.SessionQuery{})
	must(t, err)
	wantEqual(t, "listed sessions: the conversation of each version", len(list.Items), 2)
}

// pydantic-ai's output_type and the Agents SDK's tool_choice require a call of their own tools; the
// agent's tool, which they do not see, may come first.
func TestPythonFrameworks(t *testing.T) {
	t.Parallel()
	python := process.FindPythonClients(t)
	b := newBobbin(t, dbtest.MigratedSQLiteURL(t))
	seen := runFramework(t, python, "frameworks.py", b.front.url, aliceKey)
	bonn := `{"city": "Bonn", "people": 340000}`
	wantSeen(t, seen, map[string]string{
		"output_type chat": bonn, "output_type again chat": bonn, "output_type responses": bonn, "output_type again responses": bonn,
		"agents chat":      `[["get_weather"], "answer to: use a tool and the weather of the Agents SDK, chat"]`,
		"agents responses": `[["get_weather"], "answer to: use a tool and the weather of the Agents SDK, responses"]`,
	})
}
