package api_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bobbin/app/api"
	"bobbin/app/api/openapi"
	"bobbin/app/api/ops"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/golden"
	"bobbin/tests/must"
)

// TestDocumentHasAllRoutes: the routes and the document say the same.
func TestDocumentHasAllRoutes(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New(t))
	var routes []string
	for _, route := range api.New(opts).Routes() {
		if strings.Contains(route, " /internal/") || strings.Contains(route, " /v1/") || slices.Contains([]string{"POST /mcp", "GET /", "GET /assets/:file", "GET /widget.html", "GET /widget.js"}, route) {
			continue // for the command line alone; protocols that are documented elsewhere; the web page
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
	compare.Equal(t, "routes differ from the document", documented(t), routes)
}

// documented returns the operations of the document, as "GET /api/v1/sessions/{id}".
func documented(t *testing.T) []string {
	t.Helper()
	var operations []string
	for _, group := range openapi.New().Groups {
		for _, op := range group.Operations {
			operations = append(operations, op.Method+" "+op.Path)
		}
	}
	slices.Sort(operations)
	return operations
}

// What the web page's types are generated from is the document; after -update run npm run types in
// app/web/ui.
func TestDocumentOfWebPage(t *testing.T) {
	t.Parallel()
	var want bytes.Buffer
	must.Do(t, json.Indent(&want, openapi.New().JSON, "", " "))
	golden.Check(t, "../web/ui/openapi.json", want.String())
}

// TestProblemCodes: the document lists each code with which the server answers, as API.md does. The web page has a German
// sentence for each of them: without one it does not compile.
func TestProblemCodes(t *testing.T) {
	t.Parallel()
	var document struct {
		Components struct {
			Schemas struct {
				Problem struct {
					Properties struct{ Code struct{ Enum []string } }
				}
			}
		}
	}
	must.Do(t, json.Unmarshal(openapi.New().JSON, &document))
	codes := document.Components.Schemas.Problem.Properties.Code.Enum
	_, table, _ := strings.Cut(string(must.Get(os.ReadFile("../../docs/API.md"))(t)), "| status | codes |")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []string
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(table, -1) {
		listed = append(listed, m[1])
	}
	slices.Sort(listed)
	compare.Equal(t, "codes of the document and of API.md", codes, slices.Compact(listed))
	known := append([]string{"step_limit", "model_", "model_content_filter"}, codes...) // three are of runs only
	for _, k := range ops.ErrorKinds() {
		compare.True(t, slices.Contains(known, k.Code), "the document lacks the code %s", k.Code)
	}
	literal := regexp.MustCompile(`\b(?:Code:|[cC]ode[A-Z]\w*\s+=|\.Code =)\s*"([a-z_]+)"`)
	must.Do(t, filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && slices.Contains([]string{"../web", "../api/openai", "../core/llm"}, path) {
			return cmp.Or(err, fs.SkipDir)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		for _, m := range literal.FindAllStringSubmatch(string(must.Get(os.ReadFile(path))(t)), -1) {
			compare.True(t, slices.Contains(known, m[1]), "%s: the document lacks the code %s", path, m[1])
		}
		return nil
	}))
}

// TestOpenAPI: everybody gets the document, and who has it is told so.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	w := do(server, request("GET", "/openapi.json", "", "X-API-Key: wrong"))
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || !strings.HasPrefix(w.Body.String(), `{"openapi":"3.1.0"`) {
		t.Fatalf("got %d %s %.40s, want the document", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	etag := w.Header().Get("ETag")
	w = do(server, request("GET", "/openapi.json", "", `If-None-Match: "other", W/`+etag))
	compare.True(t, w.Code == http.StatusNotModified && w.Body.Len() == 0, "got %d and %d bytes for who has it, want 304 and none", w.Code, w.Body.Len())
	w = do(server, request("GET", "/openapi.json", "", `If-None-Match: "other"`))
	compare.Equal(t, "for who has another one: want 200", http.StatusOK, w.Code)
}

// TestDocsPage: the page and what it loads are there, and nothing comes from elsewhere or runs inline, so that its
// policy holds. What it shows is tested in a browser (browser.TestPage, operation/docs).
func TestDocsPage(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	w := do(server, request("GET", "/docs", ""))
	page := w.Body.String()
	if policy := w.Header().Get("Content-Security-Policy"); w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(policy, "script-src 'self'; style-src 'self'") {
		t.Fatalf("got %d %v, want the page with its policy", w.Code, w.Header())
	}
	loaded := regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllStringSubmatch(page, -1)
	for _, link := range loaded {
		w := do(server, request("GET", "/"+link[1], "", "Accept-Encoding: gzip"))
		if w.Code != http.StatusOK || strings.Contains(link[1], "swagger-ui") && w.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: got %d %v, want a file, and the library's compressed", link[1], w.Code, w.Header())
		}
	}
	compare.Equal(t, "files", 5, len(loaded))
	page += do(server, request("GET", "/docs/start.js", "")).Body.String()
	for _, foreign := range []string{"://", `="//`, "<script>", "<style", " style=", " onclick="} {
		compare.True(t, !strings.Contains(page, foreign), "the page has %s", foreign)
	}
	compare.Contains(t, "the library, for who takes nothing compressed", "SwaggerUIBundle", do(server, request("GET", "/docs/swagger-ui-bundle.js", "")).Body.String())
	compare.Equal(t, "for who has it: want 304", http.StatusNotModified, do(server, request("GET", "/docs", "", "If-None-Match: "+w.Header().Get("ETag"))).Code)
	wantProblem(t, do(server, request("GET", "/docs/secret.txt", "")), 404, "not_found")
}

// What is not there is absent from answers and events, which the contract holds against the document: nothing
// is null but the next_cursor of a last page.
func TestOneKindOfNothing(t *testing.T) {
	t.Parallel()
	var document struct {
		Components struct {
			Schemas map[string]json.RawMessage `json:"schemas"`
		} `json:"components"`
	}
	must.Do(t, json.Unmarshal(openapi.New().JSON, &document))
	for name, schema := range document.Components.Schemas {
		compare.True(t, !strings.Contains(string(schema), `"null"`) || name == "NextCursor", "%s may be null: %s", name, schema)
	}
}
