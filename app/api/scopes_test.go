package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"bobbin/app/api"
	"bobbin/app/api/auth"
	"bobbin/app/api/openapi"
	"bobbin/app/core"
	"bobbin/tests/apitest"
)

// scopesOf returns the scope that the document says an operation needs; empty = none.
func scopesOf(t *testing.T) map[string]string {
	t.Helper()
	document, err := openapi.New()
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(document.JSON(), &read); err != nil {
		t.Fatal(err)
	}
	needs := map[string]string{}
	for path, item := range read.Paths {
		for method, raw := range item {
			if method == "parameters" {
				continue
			}
			var op struct {
				Security []map[string][]string `json:"security"`
			}
			if err := json.Unmarshal(raw, &op); err != nil {
				t.Fatal(err)
			}
			operation := strings.ToUpper(method) + " " + path
			needs[operation] = ""
			for _, way := range op.Security {
				for _, scopes := range way {
					needs[operation] = strings.Join(scopes, " ")
				}
			}
		}
	}
	return needs
}

// TestScopes: what the document says of scopes is what the server does: a key with all
// scopes but that one is refused, by name, before anything is done; one with that
// alone is not.
func TestScopes(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	opts, _ := options(backend)
	keys := map[string]core.Scopes{"read": core.CanRead, "write": core.CanWrite, "metrics": core.CanMetrics, "delete": core.CanDelete, "export": core.CanExport}
	var known []auth.Key
	for scope, right := range keys {
		known = append(known, auth.NewKey("o", "only-"+scope, right), auth.NewKey("o", "not-"+scope, core.Everything&^right))
	}
	opts.Auth = auth.New(auth.Options{Keys: known, Required: true})
	server := api.New(opts)
	counted := map[string]int{}
	for operation, scope := range scopesOf(t) {
		method, path, _ := strings.Cut(operation, " ")
		counted[scope]++
		if strings.HasPrefix(path, "/api/") && scope == "" && path != "/api/v1/blobs/{id}/content" { // which has a signature
			t.Errorf("%s: the document names no scope", operation)
		}
		if scope == "" || strings.HasSuffix(path, "/events") { // a stream would not end
			continue
		}
		path = strings.NewReplacer("{mid}", missing, "{id}", missing, "{name}", "nobody", "{version}", "7").Replace(path)
		before := len(backend.Calls())
		p := wantProblem(t, do(server, request(method, path, "", "X-API-Key: not-"+scope)), 403, "missing_scope")
		if !strings.Contains(p.Detail, "scope "+scope) {
			t.Errorf("%s: got %q, want the scope %s named", operation, p.Detail, scope)
		}
		if after := len(backend.Calls()); after != before {
			t.Errorf("%s: got %d calls for a key that may not, want none", operation, after-before)
		}
		if w := do(server, request(method, path, "", "X-API-Key: only-"+scope)); w.Code == 401 || w.Code == 403 {
			t.Errorf("%s: got %d %s for a key that may, want neither 401 nor 403", operation, w.Code, w.Body)
		}
	}
	if fmt.Sprint(counted["metrics"]) != "1" || counted["read"] < 15 || counted["write"] < 15 {
		t.Errorf("got operations by scope %v: is the document read at all?", counted)
	}
}

// TestRates: a key that asks too often is told when to go on; other keys, and this
// machine's own user, are not held up.
func TestRates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testRates) // no time passes
}

func testRates(t *testing.T) {
	backend := apitest.New()
	opts, _ := options(backend)
	opts.Limits.PerSecond = 1
	opts.Auth = auth.New(auth.Options{Keys: []auth.Key{auth.NewKey("ann", "a", core.ReadWrite), auth.NewKey("bob", "b", core.ReadWrite)}})
	server := api.New(opts)
	for range 10 {
		if w := do(server, request("GET", sessionPath, "", "X-API-Key: a")); w.Code != 200 {
			t.Fatalf("got %d within the limit, want 200", w.Code)
		}
	}
	before := len(backend.Calls())
	w := do(server, request("GET", sessionPath, "", "X-API-Key: a"))
	p := wantProblem(t, w, 429, "rate_limited")
	if w.Header().Get("Retry-After") != "2" || !strings.Contains(p.Detail, "limits.requests_per_second") || len(backend.Calls()) != before {
		t.Errorf("got Retry-After %q and %q, want 2 and what to do, and nothing done", w.Header().Get("Retry-After"), p.Detail)
	}
	for range 15 {
		if w := do(server, request("GET", sessionPath, "")); w.Code != 200 {
			t.Fatalf("got %d for this machine's own user, want 200", w.Code)
		}
	}
	if w := do(server, request("GET", sessionPath, "", "X-API-Key: b")); w.Code != 200 {
		t.Errorf("got %d for another key, want 200", w.Code)
	}
}
