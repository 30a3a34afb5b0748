package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/mcptest"
)

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
