package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/api"
	"bobbin/app/api/apitest"
	"bobbin/app/api/openapi"
)

// TestDocumentHasAllRoutes: the routes and the document say the same (issue 3, 8).
func TestDocumentHasAllRoutes(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New())
	var routes []string
	for _, route := range api.New(opts).Routes() {
		if strings.Contains(route, " /internal/") {
			continue // for the command line alone
		}
		segments := strings.Split(route, "/")
		for i, s := range segments {
			if name, ok := strings.CutPrefix(s, ":"); ok {
				segments[i] = "{" + name + "}"
			}
		}
		routes = append(routes, strings.Join(segments, "/"))
	}
	slices.Sort(routes)
	if diff := cmp.Diff(documented(t), routes); diff != "" {
		t.Errorf("routes differ from the document (-document +routes):\n%s", diff)
	}
}

// documented returns the operations of the document, as "GET /api/v1/sessions/{id}".
func documented(t *testing.T) []string {
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
	var operations []string
	for path, item := range read.Paths {
		for method := range item {
			if method != "parameters" {
				operations = append(operations, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(operations)
	return operations
}

// TestOpenAPI: everybody gets the document, and who has it is told so.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New())
	server := api.New(opts)
	w := do(server, request("GET", "/openapi.json", "", "X-API-Key: wrong"))
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || !strings.HasPrefix(w.Body.String(), `{"openapi":"3.1.0"`) {
		t.Fatalf("got %d %s %.40s, want the document", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	etag := w.Header().Get("ETag")
	w = do(server, request("GET", "/openapi.json", "", `If-None-Match: "other", W/`+etag))
	if w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("got %d and %d bytes for who has it, want 304 and none", w.Code, w.Body.Len())
	}
	w = do(server, request("GET", "/openapi.json", "", `If-None-Match: "other"`))
	if w.Code != http.StatusOK {
		t.Errorf("got %d for who has another one, want 200", w.Code)
	}
}
