package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/agents/tools"
	"bobbin/app/agents/tools/mcp"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/logtext"
	"bobbin/tests/mcptest"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	os.Exit(m.Run())
}

// patience is how long tests wait for what takes a moment: long enough for a busy machine.
const patience = 2 * time.Minute

// program is the definition of a server that is started.
func program(mode string) core.ToolDefinition {
	command, args := mcptest.Command(mode)
	return core.ToolDefinition{Name: "test", Kind: core.ToolMCP, Command: command, Args: args, File: "x.yaml"}
}

// start runs a server until the test ends. It was tried to connect when start returns.
func start(t *testing.T, d core.ToolDefinition) (*mcp.Server, *logtext.Log) {
	t.Helper()
	log := &logtext.Log{}
	s := mcp.NewServer(d, mcp.Options{
		Env: func(name string) string {
			return map[string]string{"PATH": os.Getenv("PATH"), "TOKEN": "hush-4711"}[name]
		},
		Logger: slog.New(slog.NewTextHandler(log, nil)), Pause: time.Millisecond,
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	<-s.Tried()
	return s, log
}

// overHTTP serves a server over HTTP and returns its definition.
func overHTTP(t *testing.T, server *sdk.Server, wrap func(http.Handler) http.Handler) core.ToolDefinition {
	t.Helper()
	var handler http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	if wrap != nil {
		handler = wrap(handler)
	}
	h := httptest.NewServer(handler)
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return core.ToolDefinition{Name: "test", Kind: core.ToolMCP, URL: h.URL, PrivateHosts: []string{"127.0.0.1"}}
}

// call calls a tool of the server by the name that models use.
func call(t *testing.T, s *mcp.Server, name, arguments string) string {
	t.Helper()
	return callWithin(t, s, name, arguments, patience)
}

func callWithin(t *testing.T, s *mcp.Server, name, arguments string, limit time.Duration) string {
	t.Helper()
	list := s.Listing().Tools
	i := slices.IndexFunc(list, func(c *tools.Custom) bool { return c.Definition.Name == name })
	if i < 0 {
		return "no tool " + name
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	got, err := list[i].Call(ctx, tools.Call{Arguments: arguments})
	if err != nil {
		return "error: " + err.Error()
	}
	return got
}

// await waits until the listing is as it should be.
func await(t *testing.T, s *mcp.Server, what string, ok func(tools.Listing) bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(s.Listing()); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s; got %+v", what, s.Listing())
		}
	}
}

func names(l tools.Listing) []string {
	var out []string
	for _, c := range l.Tools {
		out = append(out, c.Definition.Name)
	}
	return out
}

// Over both transports agents have the server's tools, by names and schemas that providers take.
func TestTools(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]core.ToolDefinition{"stdio": program(""), "http": overHTTP(t, mcptest.New(""), nil)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := start(t, d)
			want := []string{"test__change", "test__die", "test__echo", "test__fail", "test__large", "test__picture", "test__pid", "test__set_value", "test__sleep", "test__write"}
			if diff := cmp.Diff(want, names(s.Listing())); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", s.Listing().Problem, diff)
			}
			modes, repeatable := map[string]core.ApprovalMode{}, map[string]bool{}
			for _, c := range s.Listing().Tools {
				modes[c.Definition.Name], repeatable[c.Definition.Name] = c.Approval, c.Repeatable
				if strings.Contains(string(c.Definition.Parameters), "$schema") || !strings.Contains(string(c.Definition.Parameters), `"properties":{`) {
					t.Errorf("%s has the schema %s", c.Definition.Name, c.Definition.Parameters)
				}
			}
			if modes["test__echo"] != core.ApprovalNever || modes["test__write"] != core.ApprovalAlways || modes["test__set_value"] != core.ApprovalAlways ||
				!repeatable["test__echo"] || repeatable["test__write"] || !repeatable["test__set_value"] {
				t.Errorf("got approvals %v, repeatable %v", modes, repeatable)
			}
			for _, c := range []struct{ tool, arguments, want string }{
				{"test__echo", `{"text":"hello"}`, "hello"},
				{"test__echo", "", "<nil>"}, // an empty object arrives, and not null
				{"test__echo", "null", "error: the arguments are not one JSON object"},
				{"test__echo", `{"a":1} x`, "error: the arguments are not one JSON object"},
				{"test__set_value", "{}", `{"value":1}`},
				{"test__fail", "{}", "error: no such city"},
				{"test__picture", "{}", "here\n[image image/png, 5 bytes]"},
			} {
				compare.Equal(t, fmt.Sprintf("%s %s", c.tool, c.arguments), c.want, call(t, s, c.tool, c.arguments))
			}
		})
	}
}

// The definition chooses which tools agents get.
func TestOnly(t *testing.T) {
	t.Parallel()
	d := program("")
	d.Only = []string{"echo", "gone"}
	s, _ := start(t, d)
	if got := s.Listing(); !cmp.Equal(names(got), []string{"test__echo"}) || !cmp.Equal(got.Notes, []string{`it has no tool "gone"`}) {
		t.Errorf("got %v, %v", names(got), got.Notes)
	}
}

// Tools that change are listed again. A call of one that has vanished is an error.
func TestListChanges(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]core.ToolDefinition{"stdio": program(""), "http": overHTTP(t, mcptest.New(""), nil)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := start(t, d)
			before := s.Listing()
			if got := call(t, s, "test__change", "{}"); got != "changed" {
				t.Fatalf("got %s", got)
			}
			await(t, s, "the new tool", func(l tools.Listing) bool { return slices.Contains(names(l), "test__new1") })
			if after := s.Listing(); after.Hash == before.Hash || slices.Contains(names(after), "test__write") {
				t.Errorf("got %v", names(after))
			}
			i := slices.IndexFunc(before.Tools, func(c *tools.Custom) bool { return c.Definition.Name == "test__write" })
			if _, err := before.Tools[i].Call(t.Context(), tools.Call{}); err == nil || !strings.HasPrefix(err.Error(), "the server test refused the call: ") {
				t.Errorf("a tool that has vanished: got %v", err)
			}
		})
	}
}

// A server that dies in a call is started again; the call is an error and is not repeated.
func TestServerDies(t *testing.T) {
	t.Parallel()
	s, log := start(t, program(""))
	if got := call(t, s, "test__die", "{}"); got != "error: the connection to the server test was lost during the call; whether it took effect is not known" {
		t.Errorf("got %s", got)
	}
	for deadline := time.Now().Add(patience); ; {
		got := call(t, s, "test__echo", `{"text":"again"}`)
		if got == "again" {
			break
		}
		if !strings.Contains(got, "is not connected at the moment") && !strings.Contains(got, "was lost during the call") || time.Now().After(deadline) {
			t.Fatalf("got %s\n%s", got, log)
		}
	}
	if n := strings.Count(log.String(), "mcp server connected"); n < 2 {
		t.Errorf("connected %d times: %s", n, log)
	}
}

// A call that takes too long is canceled; the server serves the next one.
func TestSlowCall(t *testing.T) {
	t.Parallel()
	s, _ := start(t, program(""))
	if got := callWithin(t, s, "test__sleep", "{}", 50*time.Millisecond); got != "error: context deadline exceeded" {
		t.Errorf("got %s", got)
	}
	compare.Equal(t, `call(t, s, "test__echo", '{"text":"x"}')`, "x", call(t, s, "test__echo", `{"text":"x"}`))
}

// A server that is not needed any more ends, also while a call is in flight, which is an error then.
func TestStopInACall(t *testing.T) {
	t.Parallel()
	s := mcp.NewServer(program(""), mcp.Options{Env: os.Getenv})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	<-s.Tried()
	mark := filepath.Join(t.TempDir(), "begun")
	answer := make(chan string, 1)
	go func() { answer <- callWithin(t, s, "test__sleep", fmt.Sprintf(`{"mark":%q}`, mark), time.Minute) }()
	for begun := false; !begun; runtime.Gosched() {
		_, err := os.Stat(mark)
		begun = err == nil
	}
	cancel()
	<-done
	compare.Contains(t, "<-answer", "was lost during the call", <-answer)
}

// The secrets of the environment are sent to the server as headers, and to nobody else.
func TestHeaders(t *testing.T) {
	t.Parallel()
	var without, inside atomic.Int64
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside.Add(1) }))
	t.Cleanup(secret.Close)
	d := overHTTP(t, mcptest.New(""), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer hush-4711" || r.Header.Get("X-Key") != "a hush-4711" {
				without.Add(1)
			}
			next.ServeHTTP(w, r)
		})
	})
	d.Bearer, d.Headers = "TOKEN", map[string]string{"X-Key": "a ${TOKEN}"}
	s, log := start(t, d)
	if got := call(t, s, "test__echo", `{"text":"x"}`); got != "x" || without.Load() != 0 {
		t.Errorf("got %s; %d requests without the headers", got, without.Load())
	}
	compare.True(t, !strings.Contains(log.String(), "hush"), "the log has the secret: %s", log)
	redirecting := overHTTP(t, mcptest.New(""), func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, secret.URL, http.StatusTemporaryRedirect)
		})
	})
	redirecting.Bearer = "TOKEN"
	if s, _ := start(t, redirecting); s.Listing().Problem == "" || inside.Load() != 0 {
		t.Errorf("a redirect inward: got %+v, %d requests arrived", s.Listing(), inside.Load())
	}
	d.PrivateHosts = nil
	if s, _ := start(t, d); !strings.Contains(s.Listing().Problem, "its address is not public; if it may be reached, name the host in private_hosts") {
		t.Errorf("this machine: got %q", s.Listing().Problem)
	}
	d.Bearer = "NONE"
	if s, _ := start(t, d); s.Listing().Problem != "the tool is not set up: the environment variable NONE is not set" {
		t.Errorf("no token: got %q", s.Listing().Problem)
	}
}

// tokenServer issues tokens that count up: access-token-1, access-token-2 …
type tokenServer struct {
	*httptest.Server

	mu      sync.Mutex
	issued  int             // guarded by mu
	expires int             // seconds; guarded by mu
	down    bool            // guarded by mu
	revoked map[string]bool // guarded by mu
	wrong   string          // what was wrong with a request; guarded by mu
}

// newTokenServer starts a token server whose tokens hold for a time, and an MCP server that wants
// them.
func newTokenServer(t *testing.T, expires int) (*tokenServer, core.ToolDefinition) {
	t.Helper()
	s := &tokenServer{expires: expires, revoked: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.issue))
	t.Cleanup(s.Close)
	d := overHTTP(t, mcptest.New(""), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			s.mu.Lock()
			accepted := ok && strings.HasPrefix(token, "access-token-") && !s.revoked[token]
			s.mu.Unlock()
			if !accepted {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	d.OAuth = core.OAuthClient{TokenURL: s.URL + "/token", ClientID: "bobbin", ClientSecret: "TOKEN", Scopes: []string{"read", "write"}, Parameters: map[string]string{"audience": "tools"}}
	return s, d
}

func (s *tokenServer) issue(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		panic(http.ErrAbortHandler)
	}
	id, secret, _ := r.BasicAuth()
	_ = r.ParseForm() // what is missing is compared
	if got := fmt.Sprintf("%s %s %s", id, secret, r.Form.Encode()); !strings.HasPrefix(got, "bobbin hush-4711 audience=tools&grant_type=client_credentials&resource=http") || !strings.HasSuffix(got, "&scope=read+write") {
		s.wrong = got
	}
	w.Header().Set("Content-Type", "application/json")
	if secret != "hush-4711" {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"error":"invalid_client","error_description":"the secret %s is wrong"}`, secret)
		return
	}
	s.issued++
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": fmt.Sprintf("access-token-%d", s.issued), "token_type": "Bearer", "expires_in": s.expires})
}

// set changes the server and returns how many tokens it has issued.
func (s *tokenServer) set(change func()) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	return s.issued
}

// A token serves all requests until it expires; one that the server refuses is replaced once.
func TestTokens(t *testing.T) {
	t.Parallel()
	tokens, d := newTokenServer(t, 3600)
	s, log := start(t, d)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			compare.Equal(t, `call(t, s, "test__echo", '{"text":"x"}')`, "x", call(t, s, "test__echo", `{"text":"x"}`))
		})
	}
	all.Wait()
	compare.Equal(t, "the server repeats the token", "***", call(t, s, "test__echo", `{"text":"access-token-1"}`))
	compare.Equal(t, "tokens of one hour", 1, tokens.set(func() { tokens.revoked["access-token-1"] = true }))
	for range 20 {
		all.Go(func() {
			compare.Equal(t, "after the token was refused", "wrote y", call(t, s, "test__write", `{"text":"y"}`))
		})
	}
	all.Wait()
	compare.Equal(t, "tokens after one was refused", 2, tokens.set(func() {}))
	tokens.set(func() { tokens.revoked["access-token-2"], tokens.revoked["access-token-3"] = true, true })
	for range 3 {
		if got := call(t, s, "test__echo", `{"text":"z"}`); got == "z" {
			t.Error("a server that refuses all tokens was called")
		}
	}
	compare.Equal(t, "tokens for a server that refuses all of them: want no more than 2", 2, tokens.set(func() {}))
	if tokens.wrong != "" || strings.Contains(log.String(), "hush") || strings.Contains(log.String(), "access-token-") {
		t.Errorf("a request was %q; the log: %s", tokens.wrong, log)
	}
}

// A token that has expired is replaced before the next request.
func TestTokenExpires(t *testing.T) {
	t.Parallel()
	tokens, d := newTokenServer(t, 1) // less than the margin: it has expired when it comes
	s, _ := start(t, d)
	before := tokens.set(func() { tokens.expires = 3600 })
	for range 3 {
		compare.Equal(t, `call(t, s, "test__echo", '{"text":"x"}')`, "x", call(t, s, "test__echo", `{"text":"x"}`))
	}
	if n := tokens.set(func() {}); n != before+1 {
		t.Errorf("got %d more tokens for three calls, want 1", n-before)
	}
}

// A token server that is away, or refuses, is why the server is not connected; it is asked again.
func TestTokenServerIsAway(t *testing.T) {
	t.Parallel()
	tokens, d := newTokenServer(t, 3600)
	tokens.set(func() { tokens.down = true })
	s, _ := start(t, d)
	compare.Contains(t, "away", "no access token: the token server cannot be reached", s.Listing().Problem)
	tokens.set(func() { tokens.down = false })
	await(t, s, "the connection", func(l tools.Listing) bool { return l.Problem == "" })
	compare.Equal(t, "back", "x", call(t, s, "test__echo", `{"text":"x"}`))
	d.OAuth.ClientSecret = "PATH"
	if s, log := start(t, d); !strings.Contains(s.Listing().Problem, "the token server answers 401 invalid_client") || strings.Contains(log.String(), "is wrong") {
		t.Errorf("refused: got %q, %s", s.Listing().Problem, log)
	}
	d.OAuth.ClientSecret = "NONE"
	if s, _ := start(t, d); s.Listing().Problem != "the tool is not set up: the environment variable NONE is not set" {
		t.Errorf("no secret: got %q", s.Listing().Problem)
	}
}
