package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	operations "bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/ops"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/jwttest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// The revisions of the protocol that clients speak.
const (
	revision2025 = "2025-11-25"
	revision2026 = "2026-07-28"
)

// host is a program that uses Bobbin over MCP.
type host struct {
	*mcp.ClientSession

	t testing.TB
}

// newHost connects to the MCP server of the Bobbin with the key.
func newHost(t testing.TB, h *apptest.Bobbin, key, revision string) *host {
	t.Helper()
	p := &host{t: t}
	web := http.DefaultClient
	if key != "" {
		web = oauth2.NewClient(t.Context(), oauth2.StaticTokenSource(&oauth2.Token{AccessToken: key}))
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	transport := &mcp.StreamableClientTransport{Endpoint: h.URL + "/mcp", HTTPClient: web, DisableStandaloneSSE: true, MaxRetries: -1}
	session := must.Get(c.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision}))(t)
	t.Cleanup(func() { _ = session.Close() })
	if got := session.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("got revision %s, want %s", got, revision)
	}
	p.ClientSession = session
	return p
}

// arguments are those of a tool call.
type arguments map[string]any

// try calls a tool and returns what its result says.
func (p *host) try(tool string, a arguments) (text string, failed bool) {
	p.t.Helper()
	got, err := p.CallTool(p.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: a})
	must.True(p.t, err == nil, "%s: %v", tool, err)
	for _, content := range got.Content {
		text += content.(*mcp.TextContent).Text
	}
	return text, got.IsError
}

// use calls a tool that succeeds, and returns its result.
func use[T any](p *host, tool string, a arguments) (out T) {
	p.t.Helper()
	text, failed := p.try(tool, a)
	must.True(p.t, !failed, "%s: %s", tool, text)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		p.t.Fatalf("%s: %v in %s", tool, err, text)
	}
	return out
}

// wantFailure calls a tool that fails with words in its message.
func (p *host) wantFailure(words, tool string, a arguments) {
	p.t.Helper()
	if text, failed := p.try(tool, a); !failed || !strings.Contains(text, words) {
		p.t.Errorf("%s %v: got %v %q, want a failure with %q", tool, a, failed, text, words)
	}
}

// reply is the result of the tools about runs.
type reply struct {
	SessionID core.SessionID `json:"session_id"`
	RunID     core.RunID     `json:"run_id"`
	Status    core.RunStatus `json:"status"`
	Answer    string         `json:"answer"`
	Error     string         `json:"error"`
	Next      string         `json:"next"`
	Approvals []struct {
		ApprovalID core.ApprovalID `json:"approval_id"`
		Tool       string          `json:"tool"`
	} `json:"approvals"`
}

// newMCPHouse starts a house with a model, and memories.
func newMCPHouse(t *testing.T, url string, settings ...apptest.Setting) *apptest.Bobbin {
	t.Helper()
	p := apptest.NewProvider(t, provider.Options{Window: 8192})
	return apptest.New(t, url, append([]apptest.Setting{apptest.WithModel("house", 8192, 2048, p)}, settings...)...)
}

// Nobody reads or changes by MCP what belongs to another owner, or to another end user.
func TestMCPTwoOwners(t *testing.T) {
	t.Parallel()
	signer := jwttest.NewSigner(t, "2026-a", "RS256")
	keys := jwttest.Serve(t, signer)
	keys.Set(jwttest.JWKS(t, signer))
	h := newMCPHouse(t, dbtest.MigratedSQLiteURL(t), withTokens(keys))
	_, other := createKey(h, ops.NewKey{Name: "other"})
	shop := newHost(t, h, "configured-secret", revision2025)
	said := use[reply](shop, "send_message", arguments{"content": "our secret garden"})
	kept := use[map[string]any](shop, "create_memory", arguments{"content": "our secret"})
	kim := newHost(t, h, signer.User(t, "kim"), revision2026)
	hers := use[reply](kim, "send_message", arguments{"content": "my secret garden"})

	for name, key := range map[string]string{"another owner": other, "an end user": signer.User(t, "eve")} {
		for _, revision := range []string{revision2025, revision2026} {
			p := newHost(t, h, key, revision)
			for _, theirs := range []reply{said, hers} {
				for _, tool := range []string{"get_session", "get_messages", "get_context", "summarize_session"} {
					p.wantFailure("not exist", tool, arguments{"session_id": theirs.SessionID})
				}
				p.wantFailure("not exist", "send_message", arguments{"session_id": theirs.SessionID, "content": "hello"})
				p.wantFailure("not exist", "search_messages", arguments{"session_id": theirs.SessionID, "query": "garden"})
				for _, tool := range []string{"wait_for_run", "cancel_run"} {
					p.wantFailure("not exist", tool, arguments{"run_id": theirs.RunID})
				}
				for _, aspect := range []string{"context", "summary"} {
					_, err := p.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: fmt.Sprintf("bobbin://sessions/%s/%s", theirs.SessionID, aspect)})
					compare.True(t, err != nil && strings.Contains(err.Error(), "not found"), "%s: got %v, want not found", name, err)
				}
			}
			p.wantFailure("not exist", "delete_memory", arguments{"memory_id": kept["memory_id"]})
			for tool, a := range map[string]arguments{"list_sessions": {}, "search_messages": {"query": "secret"}, "search_memories": {"query": "secret"}} {
				if text, failed := p.try(tool, a); failed || strings.Contains(text, "secret") || strings.Contains(text, "session_id") {
					t.Errorf("%s, %s: got %v %s, want nothing of the others", name, tool, failed, text)
				}
			}
			compare.Equal(t, name+": want no resources", 0, len(must.Get(p.ListResources(t.Context(), nil))(t).Resources))
		}
	}
	// The owner reads what its users wrote; users do not read prompts.
	if text, failed := shop.try("get_messages", arguments{"session_id": hers.SessionID}); failed || !strings.Contains(text, "my secret garden") {
		t.Errorf("got %s, want the user's message", text)
	}
	_, err := kim.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: fmt.Sprintf("bobbin://sessions/%s/prompt", hers.SessionID)})
	compare.True(t, err != nil && strings.Contains(err.Error(), "not for end users"), "got %v for the prompt, want it refused", err)
	compare.Equal(t, "templates: no prompt", 2, len(must.Get(kim.ListResourceTemplates(t.Context(), nil))(t).ResourceTemplates))
}

// A key lists and calls what its scopes allow.
func TestMCPScopes(t *testing.T) {
	t.Parallel()
	h := newMCPHouse(t, dbtest.MigratedSQLiteURL(t))
	reading := []string{"get_context", "get_messages", "get_session", "list_sessions", "search_memories", "search_messages", "wait_for_run"}
	writing := []string{"cancel_run", "create_memory", "delete_memory", "send_message", "summarize_session"}
	for name, tt := range map[string]struct {
		scopes core.Scopes
		tools  []string
	}{
		"read":   {core.CanRead, reading},
		"write":  {core.CanWrite, writing},
		"delete": {core.CanDelete, nil},
		"both":   {core.ReadWrite, slices.Sorted(slices.Values(append(slices.Clone(reading), writing...)))},
	} {
		_, secret := createKey(h, ops.NewKey{Name: "key-" + name, Owner: "shop", Rights: tt.scopes})
		p := newHost(t, h, secret, revision2026)
		var names []string
		for tool, err := range p.Tools(t.Context(), nil) {
			must.Do(t, err)
			names = append(names, tool.Name)
			a := tool.Annotations
			wantReading := slices.Contains(reading, tool.Name)
			if a.ReadOnlyHint != wantReading || *a.DestructiveHint != (tool.Name == "cancel_run" || tool.Name == "delete_memory") || tool.Title == "" {
				t.Errorf("%s: got the annotations %+v", tool.Name, a)
			}
		}
		compare.Equal(t, "tools", tt.tools, names)
		for _, tool := range append(slices.Clone(reading), writing...) {
			if !slices.Contains(tt.tools, tool) {
				p.wantFailure("requires the scope", tool, arguments{})
			}
		}
		_, err := p.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "bobbin://sessions/" + core.NewID[string]() + "/context"})
		want := "requires the scope read"
		if tt.scopes.Has(core.CanRead) {
			want = "not found"
		}
		compare.True(t, err != nil && strings.Contains(err.Error(), want), "%s: got %v for a resource, want %q", name, err, want)
	}
}

// A run that waits for a person says so, with the ids; a person's decision, not a tool,
// lets it continue.
func TestMCPApproval(t *testing.T) {
	t.Parallel()
	h := apptest.NewAsking(t, dbtest.MigratedSQLiteURL(t))
	host := newHost(t, h, "", revision2025)
	got := use[reply](host, "send_message", arguments{"content": "use the calculator please", "agent": "careful"})
	if got.Status != core.RunWaiting || len(got.Approvals) != 1 || got.Approvals[0].Tool != "calculator" || !strings.Contains(got.Next, string(got.RunID)) {
		t.Fatalf("got %+v, want a run that waits for a person", got)
	}
	must.Get(client.Call(t.Context(), h, operations.DecideApproval, operations.Decision{InRun: operations.InRun{RunID: got.RunID}, ApprovalID: got.Approvals[0].ApprovalID, Decision: "approve"}))(t)
	if got = use[reply](host, "wait_for_run", arguments{"run_id": got.RunID}); got.Status != core.RunSucceeded || got.Answer == "" {
		t.Errorf("got %+v, want the answer", got)
	}
}
