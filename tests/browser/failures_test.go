package browser_test

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"bobbin/tests/apptest"
)

// What fails is said in its place and in words, nothing that was written is lost, and the page goes on.
func testFailures(t *testing.T, b *bobbin) {
	t.Helper()
	for _, name := range []string{"refusals", "stream", "resync", "order", "parts", "escape", "files", "copies", "line"} {
		t.Run(name, func(t *testing.T) { b.play(t, "failures", name, nil, nil) })
	}
	t.Run("prefix", func(t *testing.T) { b.play(t, "failures", "prefix", map[string]any{"url": newPrefix(t, b.URL)}, nil) })
}

// newPrefix starts a proxy that has a Bobbin below a path, and returns its address.
func newPrefix(t *testing.T, target string) string {
	t.Helper()
	to := apptest.Must(url.Parse(target))(t)
	server := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Path = strings.TrimPrefix(r.In.URL.Path, "/tools/bobbin")
		r.Out.Header.Del("Origin") // a Bobbin without keys answers its own origin only
		r.SetURL(to)
	}})
	t.Cleanup(server.Close)
	return server.URL + "/tools/bobbin/"
}
