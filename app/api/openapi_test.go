package api_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
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

const webPage = "../web/dist"

// The page and its files need no key, load nothing from elsewhere, and are kept by browsers as
// long as they are right. Everything else keeps its policy.
func TestPage(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	w := do(server, request("GET", "/", "", "X-API-Key: wrong"))
	index, err := os.ReadFile(webPage + "/index.html")
	must.True(t, err == nil && w.Code == http.StatusOK && w.Body.String() == string(index), "got %d %.60s, want the page (%v)", w.Code, w.Body, err)
	h := w.Header()
	for name, want := range map[string]string{"Content-Type": "text/html; charset=utf-8", "Cache-Control": "public, no-cache", "X-Content-Type-Options": "nosniff"} {
		if h.Get(name) != want {
			t.Errorf("got %s %q, want %q", name, h.Get(name), want)
		}
	}
	policy := h.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; ", "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"} {
		compare.True(t, strings.Contains(policy, want) && !strings.Contains(policy, "unsafe"), "got policy %q, want %q in it and nothing unsafe", policy, want)
	}
	if w := do(server, request("GET", "/", "", "If-None-Match: W/"+h.Get("ETag"))); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("got %d and %d bytes for who has it, want 304 and none", w.Code, w.Body.Len())
	}
	for _, path := range []string{"/assets/nothing.js", "/assets/..%2findex.html", "/assets/index.html", "/index.html", "/assets/"} {
		w := do(server, request("GET", path, ""))
		if policy := w.Header().Get("Content-Security-Policy"); w.Code != http.StatusNotFound || policy != "default-src 'none'; frame-ancestors 'none'" || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %d with policy %q, want a problem 404 with that of the API", path, w.Code, policy)
		}
	}
}

// Every file of the build is served, compressed for those who accept it.
func TestAssets(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	assets := must.Get(fs.Glob(os.DirFS(webPage), "assets/*"))(t)
	for _, name := range append(assets, "") {
		if strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".br") {
			continue
		}
		plain := do(server, request("GET", "/"+name, "", "Accept-Encoding: br;q=0, gzip; q=0"))
		smallest := do(server, request("GET", "/"+name, "", "Accept-Encoding: gzip, br"))
		w := do(server, request("GET", "/"+name, "", "Accept-Encoding: gzip"))
		if w.Header().Get("Content-Encoding") == "gzip" && (smallest.Header().Get("Content-Encoding") != "br" || smallest.Body.Len() >= w.Body.Len()) {
			t.Errorf("/%s: got %d bytes as %q for who takes Brotli, want fewer than the %d of gzip", name, smallest.Body.Len(), smallest.Header().Get("Content-Encoding"), w.Body.Len())
		}
		caching := plain.Header().Get("Cache-Control")
		compare.True(t, plain.Code == http.StatusOK && (name == "" || caching == "public, max-age=31536000, immutable"), "/%s: got %d, kept by %q, want 200 and for good", name, plain.Code, caching)
		body := w.Body.Bytes()
		compare.Equal(t, fmt.Sprintf("/%s: compressed for a reader who refuses it", name), "", plain.Header().Get("Content-Encoding"))
		if w.Header().Get("Content-Encoding") == "gzip" {
			r, err := gzip.NewReader(w.Body)
			must.True(t, err == nil, "/%s: %v", name, err)
			if body, err = io.ReadAll(r); err != nil {
				t.Fatalf("/%s: %v", name, err)
			}
		} else if len(body) >= 2048 && strings.HasPrefix(plain.Header().Get("Content-Type"), "text/") {
			t.Errorf("/%s: got %d bytes uncompressed", name, len(body))
		}
		compare.Equal(t, fmt.Sprintf("/%s: the compressed file has another content", name), plain.Body.String(), string(body))
	}
}

// The widget's script loads into pages of any origin, its frame into those of the configured origins only.
func TestWidgetFiles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		origins   []string
		ancestors string
	}{
		{"nobody's", nil, "'none'"},
		{"of two origins", []string{"https://shop.example", "http://localhost:3000"}, "https://shop.example http://localhost:3000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			opts, _ := options(apitest.New(t))
			opts.Origins, opts.Framing = []string{"https://reads.example"}, test.origins
			server := api.New(opts)
			frame := do(server, request("GET", "/widget.html", ""))
			policy := frame.Header().Get("Content-Security-Policy")
			if frame.Code != http.StatusOK || !strings.Contains(policy, "script-src 'self'; ") || !strings.HasSuffix(policy, "; frame-ancestors "+test.ancestors) {
				t.Errorf("got the frame with %d and policy %q, want it for %s", frame.Code, policy, test.ancestors)
			}
			script := do(server, request("GET", "/widget.js", "", "Origin: https://any.example"))
			if h := script.Header(); script.Code != http.StatusOK || h.Get("Cross-Origin-Resource-Policy") != "cross-origin" || h.Get("Content-Type") != "text/javascript; charset=utf-8" {
				t.Errorf("got the script with %d and %v, want one that other origins may load", script.Code, h)
			}
			page := do(server, request("GET", "/", ""))
			compare.True(t, strings.HasSuffix(page.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'"), "got the page with policy %q, want it in no frame", page.Header().Get("Content-Security-Policy"))
		})
	}
}
