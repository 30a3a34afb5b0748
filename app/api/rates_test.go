package api_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"bobbin/app/api"
	"bobbin/app/api/auth"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
)

// TestRates: a key that asks too often is told when to go on; other keys, and this
// machine's own user, are not held up.
func TestRates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testRates) // no time passes
}

func testRates(t *testing.T) {
	opts, _ := options(apitest.New(t))
	opts.Limits.PerSecond = 1
	opts.Auth = auth.New(auth.Options{Keys: []auth.Key{auth.NewKey("ann", "a", core.ReadWrite), auth.NewKey("bob", "b", core.ReadWrite)}})
	server := api.New(opts)
	for range 10 {
		if w := do(server, request("GET", "/version", "", "X-API-Key: a")); w.Code != 200 {
			t.Fatalf("got %d within the limit, want 200", w.Code)
		}
	}
	w := do(server, request("GET", "/version", "", "X-API-Key: a"))
	p := wantProblem(t, w, 429, "rate_limited")
	if w.Header().Get("Retry-After") != "2" || !strings.Contains(p.Detail, "limits.requests_per_second") {
		t.Errorf("got Retry-After %q and %q, want 2 and what to do", w.Header().Get("Retry-After"), p.Detail)
	}
	for range 15 {
		if w := do(server, request("GET", "/version", "")); w.Code != 200 {
			t.Fatalf("got %d for this machine's own user, want 200", w.Code)
		}
	}
	compare.Equal(t, "for another key", 200, do(server, request("GET", "/version", "", "X-API-Key: b")).Code)
}
