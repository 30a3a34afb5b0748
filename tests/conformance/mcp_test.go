package conformance_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/core"
	"bobbin/tests/process"
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

// mcpKinds returns the clients, at the versions of the lock files and of go.mod. That of Python
// and both revisions of each are for the long form.
func mcpKinds() []mcpKind {
	goSDK := clientKind{name: "go-sdk 1.8"}
	sdk := clientKind{name: "@modelcontextprotocol/sdk 1.32", script: "mcpsdk.mjs"}
	client := clientKind{name: "@modelcontextprotocol/client 2.4", script: "mcpclient.mjs"}
	python := clientKind{name: "mcp 2.3 (Python)", script: "mcphost.py", python: true}
	kinds := []mcpKind{{goSDK, revision2026}, {sdk, revision2025}, {client, revision2026}}
	if os.Getenv("BOBBIN_TEST_LONG") != "" {
		kinds = append(kinds, mcpKind{goSDK, revision2025}, mcpKind{client, revision2025}, mcpKind{python, revision2025}, mcpKind{python, revision2026})
	}
	return kinds
}

// mcpUser is an MCP client at work with a key.
type mcpUser struct {
	*bobbin

	kind mcpKind
	cl   *client // nil = the Go SDK
	key  string
	mark string // in its questions
}

// do makes a call and returns how it ended.
func (u *mcpUser) do(t *testing.T, method string, params object) outcome {
	t.Helper()
	if u.cl == nil {
		return u.callGo(t, method, params)
	}
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

// bearer adds a key to requests.
type bearer struct{ key string }

// RoundTrip is part of http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.key)
	return http.DefaultTransport.RoundTrip(r)
}

// callGo makes the call with the Go SDK.
func (u *mcpUser) callGo(t *testing.T, method string, params object) (out outcome) {
	t.Helper()
	var mu sync.Mutex
	c := mcp.NewClient(&mcp.Implementation{Name: "conformance", Version: "3"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			mu.Lock()
			defer mu.Unlock()
			raw, _ := json.Marshal(r.Params)
			out.events = append(out.events, raw)
		},
	})
	result, err := u.connectGo(t, c, method, params)
	mu.Lock()
	defer mu.Unlock()
	if err != nil {
		out.fault = &fault{Class: "error", Message: err.Error()}
		return out
	}
	out.result, err = json.Marshal(result)
	must(t, err)
	return out
}

func (u *mcpUser) connectGo(t *testing.T, c *mcp.Client, method string, params object) (any, error) {
	t.Helper()
	ctx := t.Context()
	endpoint := &mcp.StreamableClientTransport{Endpoint: "http://" + u.addr + "/mcp", HTTPClient: &http.Client{Transport: bearer{u.key}}, MaxRetries: -1}
	session, err := c.Connect(ctx, endpoint, &mcp.ClientSessionOptions{ProtocolVersion: u.kind.revision})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	switch method {
	case "connect":
		r := session.InitializeResult()
		return object{"server": r.ServerInfo, "instructions": r.Instructions, "revision": r.ProtocolVersion}, nil
	case "listTools":
		return session.ListTools(ctx, nil)
	case "listResources":
		return session.ListResources(ctx, nil)
	case "listResourceTemplates":
		return session.ListResourceTemplates(ctx, nil)
	case "readResource":
		return session.ReadResource(ctx, &mcp.ReadResourceParams{URI: params["uri"].(string)})
	}
	p := &mcp.CallToolParams{Name: params["name"].(string), Arguments: params["arguments"]}
	if params["progress"] != nil {
		p.SetProgressToken("token")
	}
	if ms, ok := params["timeout"].(int); ok {
		limited, cancel := context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
		defer cancel()
		ctx = limited
	}
	return session.CallTool(ctx, p)
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
	process.FindNodeClients(t)
	results := &mcpResults{passed: map[string]bool{}}
	t.Run("databases", func(t *testing.T) {
		for database, url := range databases() {
			t.Run(database, func(t *testing.T) {
				t.Parallel()
				b := newBobbin(t, url(t))
				t.Run("clients", func(t *testing.T) {
					for _, kind := range mcpKinds() {
						t.Run(kind.name+" "+kind.revision, func(t *testing.T) {
							t.Parallel()
							b.runHost(t, kind, results)
						})
					}
				})
				if facts := b.readFacts(t); len(results.facts) == 0 {
					results.facts = facts
				}
			})
		}
	})
	results.log(t)
}

// runHost runs each operation with a client.
func (b *bobbin) runHost(t *testing.T, kind mcpKind, results *mcpResults) {
	t.Helper()
	u := &mcpUser{bobbin: b, kind: kind, key: aliceKey, mark: strings.NewReplacer(" ", "-", "/", "-", "@", "", ".", "-").Replace(kind.name + kind.revision)}
	if kind.script != "" {
		u.cl = startClient(t, kind.clientKind)
	}
	for _, o := range mcpOperations() {
		t.Run(o.name, func(t *testing.T) {
			defer func() { results.note(kind, o.name, !t.Failed()) }()
			o.run(t, u)
		})
	}
}
