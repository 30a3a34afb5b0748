package conformance_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"bobbin/app/core"
)

// The revisions of MCP that clients speak.
const (
	revision2025 = "2025-11-25"
	revision2026 = "2026-07-28"
)

// mcpKind is a client of MCP with a revision.
type mcpKind struct {
	clientKind

	revision string
}

// mcpKinds returns the clients, at the versions of the lock files. That of Python and both revisions
// of each are for the long form. tests/e2e has the Go SDK.
func mcpKinds() []mcpKind {
	sdk := clientKind{name: "@modelcontextprotocol/sdk 1.32", script: "mcpsdk.mjs"}
	client := clientKind{name: "@modelcontextprotocol/client 2.4", script: "mcpclient.mjs"}
	python := clientKind{name: "mcp 2.3 (Python)", script: "mcphost.py", python: true}
	kinds := []mcpKind{{sdk, revision2025}, {client, revision2026}}
	if os.Getenv("BOBBIN_TEST_LONG") != "" {
		kinds = append(kinds, mcpKind{client, revision2025}, mcpKind{python, revision2025}, mcpKind{python, revision2026})
	}
	return kinds
}

// mcpUser is an MCP client at work with a key.
type mcpUser struct {
	*bobbin

	kind mcpKind
	cl   *client
	key  string
	mark string // in its questions
}

// do makes a call and returns how it ended.
func (u *mcpUser) do(t *testing.T, method string, params object) outcome {
	t.Helper()
	return await(t, u.cl.begin(t, call{Method: method, Params: params, URL: "http://" + u.addr + "/mcp", Key: u.key, Revision: u.kind.revision}))
}

// get makes a call that succeeds and returns its result.
func get[T any](t *testing.T, u *mcpUser, method string, params object) T {
	t.Helper()
	out := u.do(t, method, params)
	if out.fault != nil {
		t.Fatalf("%s %v: %s", method, params, out.fault)
	}
	return decode[T](t, out.result)
}

// toolResult is the result of a tool call.
type toolResult struct {
	Content           []struct{ Text string }
	StructuredContent json.RawMessage
	IsError           bool
}

// text returns what the model of the host reads.
func (r toolResult) text() string {
	var b strings.Builder
	for _, content := range r.Content {
		b.WriteString(content.Text)
	}
	return b.String()
}

// use calls a tool that succeeds, and returns its result.
func use[T any](t *testing.T, u *mcpUser, tool string, arguments object) T {
	t.Helper()
	got := get[toolResult](t, u, "callTool", object{"name": tool, "arguments": arguments})
	if got.IsError {
		t.Fatalf("%s: %s", tool, got.text())
	}
	return decode[T](t, got.StructuredContent)
}

// wantFailure calls a tool that fails with words in its message.
func (u *mcpUser) wantFailure(t *testing.T, words, tool string, arguments object) {
	t.Helper()
	got := get[toolResult](t, u, "callTool", object{"name": tool, "arguments": arguments})
	if !got.IsError || !strings.Contains(got.text(), words) {
		t.Errorf("%s: got %v %q, want a failure with %q", tool, got.IsError, got.text(), words)
	}
}

// mcpRun is the result of the tools about runs.
type mcpRun struct {
	SessionID string         `json:"session_id"`
	RunID     core.RunID     `json:"run_id"`
	Status    core.RunStatus `json:"status"`
	Answer    string         `json:"answer"`
	Approvals []struct {
		ApprovalID core.ApprovalID `json:"approval_id"`
	} `json:"approvals"`
}

// Hosts use a Bobbin with the MCP clients that they have.
func TestMCPClients(t *testing.T) {
	t.Parallel()
	for database, url := range databases() {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			b := newBobbin(t, url(t))
			for _, kind := range mcpKinds() {
				t.Run(kind.name+" "+kind.revision, func(t *testing.T) { b.runHost(t, kind) })
			}
		})
	}
}

// runHost runs each operation with a client.
func (b *bobbin) runHost(t *testing.T, kind mcpKind) {
	t.Helper()
	mark := strings.NewReplacer(" ", "-", "/", "-", "@", "", ".", "-").Replace(kind.name + kind.revision)
	u := &mcpUser{bobbin: b, kind: kind, key: aliceKey, mark: mark, cl: startClient(t, kind.clientKind)}
	for _, o := range mcpOperations() {
		t.Run(o.name, func(t *testing.T) { o.run(t, u) })
	}
}
