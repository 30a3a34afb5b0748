package api_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"

	"bobbin/app/api"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

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
