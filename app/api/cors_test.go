package api_test

import (
	"strings"
	"testing"

	"bobbin/app/api"
	"bobbin/app/api/auth"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
)

// TestCORS: pages of the configured origins may read answers, errors too, and nobody
// else may; a key is needed all the same, and cookies are never asked for.
func TestCORS(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	opts.Origins = []string{"https://chat.example", "http://localhost:3000"}
	opts.Auth = auth.New(auth.Options{Keys: []auth.Key{auth.NewKey(core.LocalOwner, "s3cret", core.ReadWrite)}})
	server := api.New(opts)
	const key = "X-API-Key: s3cret"
	tests := []struct {
		name, origin, path string
		headers            []string
		status             int
		allowed            bool
	}{
		{"listed", "https://chat.example", sessionPath(), []string{key}, 200, true},
		{"another that is listed", "http://localhost:3000", "/version", []string{key}, 200, true},
		{"an error", "https://chat.example", "/api/v1/sessions/x", []string{key}, 404, true},
		{"without a key", "https://chat.example", sessionPath(), nil, 403, true},
		{"with a wrong key", "https://chat.example", sessionPath(), []string{"X-API-Key: x"}, 401, true},
		{"not listed", "https://evil.example", sessionPath(), []string{key}, 200, false},
		{"part of one", "https://chat.example.evil.example", sessionPath(), []string{key}, 200, false},
		{"other scheme", "http://chat.example", sessionPath(), []string{key}, 200, false},
		{"other port", "https://chat.example:8443", sessionPath(), []string{key}, 200, false},
		{"opaque", "null", sessionPath(), []string{key}, 200, false},
		{"what is for operators", "https://chat.example", "/metrics", []string{key}, 403, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := do(server, request("GET", tt.path, "", append(tt.headers, "Origin: "+tt.origin)...)).Header()
			w := do(server, request("GET", tt.path, "", append(tt.headers, "Origin: "+tt.origin)...))
			compare.True(t, w.Code == tt.status, "got %d %s, want %d", w.Code, w.Body, tt.status)
			want := ""
			if tt.allowed {
				want = tt.origin
			}
			compare.Equal(t, "Access-Control-Allow-Origin", want, h.Get("Access-Control-Allow-Origin"))
			compare.True(t, !tt.allowed || strings.Contains(h.Get("Access-Control-Expose-Headers"), "Retry-After"), "the page cannot read Retry-After")
			compare.Equal(t, "Access-Control-Allow-Credentials", "", h.Get("Access-Control-Allow-Credentials"))
			if strings.HasPrefix(tt.path, "/api/") && h.Get("Vary") != "Origin" {
				t.Errorf("got Vary %q, want Origin: a cache would mix answers up", h.Get("Vary"))
			}
		})
	}
}

// TestPreflight: a browser that asks first is told what it may send; without a key, as
// browsers send none then.
func TestPreflight(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	opts.Origins = []string{"https://chat.example"}
	opts.Auth = auth.New(auth.Options{Required: true})
	server := api.New(opts)
	ask := func(h *api.Server, origin, path string) (int, string, string) {
		w := do(h, request("OPTIONS", path, "", "Origin: "+origin, "Access-Control-Request-Method: PATCH", "Access-Control-Request-Headers: authorization,content-type,mcp-protocol-version"))
		return w.Code, w.Header().Get("Access-Control-Allow-Methods"), w.Header().Get("Access-Control-Allow-Headers")
	}
	code, methods, headers := ask(server, "https://chat.example", sessionPath())
	if code != 204 || !strings.Contains(methods, "PATCH") || headers != "authorization,content-type,mcp-protocol-version" {
		t.Errorf("got %d, methods %q, headers %q, want 204 and those asked for", code, methods, headers)
	}
	if code, methods, _ := ask(server, "https://evil.example", sessionPath()); code != 405 || methods != "" {
		t.Errorf("got %d, methods %q for an origin that is not listed, want 405 and none", code, methods)
	}
	if code, methods, _ := ask(server, "https://chat.example", "/internal/v1/purge"); code == 204 || methods != "" {
		t.Errorf("got %d, methods %q for what is for operators, want none", code, methods)
	}
	opts.Origins = nil
	if code, methods, _ := ask(api.New(opts), "https://chat.example", sessionPath()); code != 405 || methods != "" {
		t.Errorf("got %d, methods %q without configured origins, want 405 and none", code, methods)
	}
}
