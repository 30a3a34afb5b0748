package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"bobbin/app/api"
	"bobbin/tests/apitest"
)

// A path has one spelling, so that a proxy in front that looks at paths sees the same as
// the router.
func TestEncodedPaths(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New())
	server := api.New(opts)
	for _, path := range []string{
		"/api%2fv1/sessions", "/api%2Fv1/sessions", "/api/v1%2fsessions", "/%61pi/v1/sessions", "/metric%73", "/%69nternal/v1/purge/users",
		sessionPath + "/m%65ssages",
	} {
		for _, method := range []string{"GET", "POST"} {
			wantProblem(t, do(server, request(method, path, "")), 404, "no_such_route")
		}
	}
	for path, code := range map[string]int{
		"/api/v1/sessions":           200,
		"/api/v1/agents/assist%61nt": 200, // of what is not a path there is more than one spelling
		"/api/v1/agents/a%2fb":       404,
		sessionPath + "%2fmessages":  404,
		"/api/v1/agents/m%C3%BCde":   404,
	} {
		if w := do(server, request("GET", path, "")); w.Code != code || w.Code == 404 && !strings.Contains(w.Body.String(), `"code":"not_found"`) {
			t.Errorf("%s: got %d %s, want %d", path, w.Code, w.Body, code)
		}
	}
}

// A path with a word has its own methods, and not those of the route with a parameter in
// its place.
func TestMethodsOfWords(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	opts, _ := options(backend)
	server := api.New(opts)
	for _, path := range []string{"/api/v1/memories/search", "/api/v1/memories/reindex", sessionPath + "/messages/import"} {
		for _, method := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE"} {
			w := do(server, request(method, path, ""))
			if got := w.Header().Get("Allow"); got != "POST" {
				t.Errorf("%s %s: got Allow %q, want POST", method, path, got)
			}
			if wantProblem(t, w, http.StatusMethodNotAllowed, "method_not_allowed"); len(backend.Calls()) > 0 {
				t.Errorf("%s %s: got calls %v, want none", method, path, backend.Calls())
			}
		}
	}
	if w := do(server, request("PUT", memoryPath, `{"content":"x"}`)); w.Code != 200 {
		t.Errorf("got %d %s for the route with a parameter, want 200", w.Code, w.Body)
	}
	w := do(server, request("PATCH", memoryPath, ""))
	if got := w.Header().Get("Allow"); w.Code != 405 || got != "DELETE, GET, PUT" {
		t.Errorf("got %d and Allow %q for the route with a parameter, want its own", w.Code, got)
	}
}

// What is taken is what the document says: an empty parameter is no number, time or word.
func TestEmptyParameters(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New())
	server := api.New(opts)
	for path, field := range map[string]string{
		sessionPath + "/export?format=": "format", "/api/v1/agents/assistant/graph?format=": "format", "/api/v1/usage?group_by=": "group_by",
		"/api/v1/usage?from=": "from", "/api/v1/sessions?limit=": "limit", "/api/v1/sessions?archived=": "archived", sessionPath + "/messages?before=": "before",
		"/api/v1/search?q=a&role=": "role", "/api/v1/search?q=a&after=": "after", sessionPath + "/summaries/1/diff?against=": "against", sessionPath + "/events?after=": "after",
	} {
		p := wantProblem(t, do(server, request("GET", path, "")), 422, "invalid")
		if len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: got %+v, want a fault of %s", path, p.Errors, field)
		}
	}
	for _, path := range []string{"/api/v1/sessions?cursor=&user_id=&agent=&q=", sessionPath + "/messages?cursor="} {
		if w := do(server, request("GET", path, "")); w.Code != 200 {
			t.Errorf("%s: got %d %s, want 200: a text may be empty", path, w.Code, w.Body)
		}
	}
}

// The document says that a member may be null where null counts as left out.
func TestNullInBodies(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New())
	server := api.New(opts)
	const body = `{"all_owners":null,"limit":null,"cursor":null}`
	if w := do(server, request("POST", "/api/v1/memories/reindex", body)); w.Code != 200 {
		t.Errorf("got %d %s, want 200", w.Code, w.Body)
	}
	var document any
	if err := json.Unmarshal(do(server, request("GET", "/openapi.json", "")).Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("file:///openapi.json", document); err != nil {
		t.Fatal(err)
	}
	for at, bodies := range map[string][]string{
		"/paths/~1api~1v1~1memories~1reindex/post/requestBody/content/application~1json/schema": {body, `{"all_owners":true}`},
		"/components/schemas/NewSession": {`{"metadata":null,"source":null,"webhook":null,"user_id":null}`},
		"/components/schemas/NewMessage": {`{"content":"x","parts":null,"multitask":null,"role":null}`},
	} {
		schema, err := c.Compile("file:///openapi.json#" + at)
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		for _, body := range bodies {
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
			if err == nil {
				err = schema.Validate(value)
			}
			if err != nil {
				t.Errorf("%s: the document refuses %s: %v", at, body, err)
			}
		}
	}
}
