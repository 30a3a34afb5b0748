package api_test

import (
	"strings"
	"testing"

	"bobbin/app/api"
	"bobbin/tests/apitest"
)

// A path has one spelling, so that a proxy in front that looks at paths sees the same as
// the router.
func TestEncodedPaths(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	server := api.New(opts)
	for _, path := range []string{
		"/api%2fv1/sessions", "/api%2Fv1/sessions", "/api/v1%2fsessions", "/%61pi/v1/sessions", "/metric%73", "/%69nternal/v1/purge/users",
		sessionPath() + "/m%65ssages",
	} {
		for _, method := range []string{"GET", "POST"} {
			wantProblem(t, do(server, request(method, path, "")), 404, "no_such_route")
		}
	}
	for path, code := range map[string]int{
		"/api/v1/sessions":            200,
		"/api/v1/agents/assist%61nt":  200, // of what is not a path there is more than one spelling
		"/api/v1/agents/a%2fb":        404,
		sessionPath() + "%2fmessages": 404,
		"/api/v1/agents/m%C3%BCde":    404,
	} {
		if w := do(server, request("GET", path, "")); w.Code != code || w.Code == 404 && !strings.Contains(w.Body.String(), `"code":"not_found"`) {
			t.Errorf("%s: got %d %s, want %d", path, w.Code, w.Body, code)
		}
	}
}
