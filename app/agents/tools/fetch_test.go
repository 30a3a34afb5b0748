package tools_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/netguard"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// site is a web site on this machine that the fetcher believes to be anywhere.
type site struct {
	*httptest.Server
	port int
	hits atomic.Int64
}

func newSite(t *testing.T, handler http.HandlerFunc) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.hits.Add(1)
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	u := must.Get(url.Parse(s.URL))(t)
	s.port = must.Get(strconv.Atoi(u.Port()))(t)
	return s
}

// at returns an address of the site under another name.
func (s *site) at(host, path string) string { return fmt.Sprintf("http://%s:%d%s", host, s.port, path) }

// options let the fetcher reach the site by any name, at the second of its addresses.
func (s *site) options() tools.FetcherOptions {
	refused := netip.MustParseAddr("127.0.0.2")
	return tools.FetcherOptions{
		Ports: []int{s.port}, ReadHTML: readHTML, Allow: func(a netip.Addr) error {
			if a == refused {
				return netguard.ErrNotPublic
			}
			return nil
		},
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{refused, netip.MustParseAddr("127.0.0.1")}, nil
		},
	}
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(body))
	}
}

// Whatever a name resolves to is checked when it is connected to, by the default
// of production: no request arrives.
func TestNamesOfPrivateAddresses(t *testing.T) {
	t.Parallel()
	s := newSite(t, text("secret"))
	for _, address := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "fd00:ec2::254"} {
		f := tools.NewFetcher(tools.FetcherOptions{Ports: []int{s.port}, Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr(address)}, nil
		}})
		if page, err := f.Get(t.Context(), tools.Request{URL: s.at("example.com", "/")}); err == nil {
			t.Errorf("a name of %s: got %+v, want an error", address, page)
		} else if want := "the host example.com does not exist or is not public; only public web pages can be read"; err.Error() != want {
			t.Errorf("a name of %s: got %q, want %q", address, err, want)
		}
	}
	compare.Equal(t, "requests arrived", 0, s.hits.Load())
}

// What a URL looks like is checked first; no request arrives.
func TestEvilURLs(t *testing.T) {
	t.Parallel()
	s := newSite(t, text("secret"))
	const hidden = "does not exist or is not public"
	tests := []struct{ name, url, want string }{
		{"this machine", s.URL, hidden},
		{"by name", s.at("localhost", "/"), hidden},
		{"IPv6", s.at("[::1]", "/"), hidden},
		{"mapped", s.at("[::ffff:127.0.0.1]", "/"), hidden},
		{"metadata", "http://169.254.169.254/latest/meta-data/", hidden},
		{"NAT64", "http://[64:ff9b::a9fe:a9fe]/", hidden},
		{"decimal", s.at("2130706433", "/"), ""},
		{"hexadecimal", s.at("0x7f000001", "/"), ""},
		{"octal", s.at("0177.0.0.1", "/"), ""},
		{"short", s.at("127.1", "/"), ""},
		{"with a dot at the end", s.at("localhost.", "/"), ""},
		{"with a zone", s.at("[fe80::1%25eth0]", "/"), hidden},
		{"file", "file:///etc/passwd", `only http and https can be read, not "file"`},
		{"gopher", "gopher://127.0.0.1:6379/_INFO", `only http and https can be read, not "gopher"`},
		{"nothing", "", "only http and https"},
		{"no scheme", "example.com/page", "only http and https"},
		{"no host", "http:///page", "the URL has no host"},
		{"user", "http://admin@example.com/", "contains a user or a password"},
		{"password", "http://admin:secret@example.com/", "contains a user or a password"},
		{"host in the user", "http://example.com@127.0.0.1/", "contains a user or a password"},
		{"port", "http://example.com:22/", "port 22 is not allowed"},
		{"port of a database", "https://example.com:5432/", "port 5432 is not allowed"},
		{"port 0", "http://example.com:0/", "port 0 is not allowed"},
		{"too long", "http://example.com/" + strings.Repeat("x", 3000), "the URL is not valid"},
		{"control characters", "http://example.com/\r\nHost: evil", "the URL is not valid"},
	}
	f := tools.NewFetcher(tools.FetcherOptions{Ports: []int{80, 443, s.port}})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if page, err := f.Get(ctx, tools.Request{URL: tt.url}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %+v, error %v, want %q", page, err, tt.want)
			}
			compare.Equal(t, "a request arrived", 0, s.hits.Load())
		})
	}
}

// Every redirect is checked like the first address, and there are five at most.
func TestRedirects(t *testing.T) {
	t.Parallel()
	secret := newSite(t, text("secret"))
	var s *site
	s = newSite(t, func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; path {
		case "/end":
			compare.Equal(t, "header: want no referer, cookie or authorization", []string{"", "", ""}, []string{r.Referer(), r.Header.Get("Cookie"), r.Header.Get("Authorization")})
			text("arrived")(w, r)
		case "/loop":
			http.Redirect(w, r, s.at("a.example", "/loop"), http.StatusFound)
		default:
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
			to, _ := url.QueryUnescape(r.URL.RawQuery)
			http.Redirect(w, r, to, http.StatusFound)
		}
	})
	o := s.options()
	o.Ports = append(o.Ports, secret.port)
	o.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		if host == "inside.example" {
			return []netip.Addr{netip.MustParseAddr("127.0.0.2")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	o.Allow = func(a netip.Addr) error { // 127.0.0.2 is what must not be reached here
		if a == netip.MustParseAddr("127.0.0.1") {
			return nil
		}
		return netguard.Public(a)
	}
	f := tools.NewFetcher(o)
	get := func(to string, hosts ...string) (tools.Page, error) {
		return f.Get(t.Context(), tools.Request{URL: s.at("a.example", "/to?") + url.QueryEscape(to), ToolSetting: core.ToolSetting{AllowHosts: hosts}})
	}
	page := must.Get(get(s.at("b.example", "/end")))(t)
	compare.Equal(t, "the page behind the redirect", []any{"arrived", s.at("b.example", "/end")}, []any{page.Text, page.URL})
	for to, want := range map[string]string{
		fmt.Sprintf("http://127.0.0.2:%d/", secret.port): "not public",
		secret.at("inside.example", "/"):                 "not public",
		"http://169.254.169.254/latest/meta-data/":       "is not allowed",
		"file:///etc/passwd":                             "only http and https",
		"http://me:pw@b.example/":                        "contains a user",
		s.at("a.example", "/loop"):                       "redirects more than 5 times",
	} {
		if page, err := get(to); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("redirect to %s: got %+v, error %v, want %q", to, page, err, want)
		}
	}
	compare.Equal(t, "a request arrived where it must not", 0, secret.hits.Load())
	if _, err := get(s.at("b.example", "/end"), "a.example"); err == nil || !strings.Contains(err.Error(), "the host b.example is not allowed; the hosts are a.example") {
		t.Errorf("redirect to a host that is not allowed: got error %v", err)
	}
	compare.Error(t, "redirect to a host that is allowed", nil, compare.ErrorOf(get(s.at("x.b.example", "/end"), "a.example", "*.B.example")))
}

// A fetch is bounded in time and bytes, of what a small packed answer becomes too.
func TestBounds(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		switch r.URL.Path {
		case "/slow":
			<-release
		case "/drip":
			for range 100 {
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
				select {
				case <-release:
					return
				case <-time.After(50 * time.Millisecond):
				}
			}
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			chunk := make([]byte, 1<<20)
			for i := range chunk {
				chunk[i] = 'a'
			}
			for range 200 {
				if _, err := z.Write(chunk); err != nil {
					return
				}
			}
			_ = z.Close()
		case "/header":
			w.Header().Set("X-Large", strings.Repeat("x", 1<<20))
		default:
			_, _ = w.Write([]byte(strings.Repeat("y", 5000)))
		}
	})
	defer close(release)
	f := tools.NewFetcher(s.options())
	for _, path := range []string{"/slow", "/drip"} {
		_, err := f.Get(t.Context(), tools.Request{URL: s.at("a.example", path), ToolSetting: core.ToolSetting{Timeout: core.Duration(200 * time.Millisecond)}})
		compare.True(t, err != nil && err.Error() == "the page did not arrive within 200ms", "%s: got error %v, want that the time is over", path, err)
	}
	for path, want := range map[string]int{"/bomb": 2 << 20, "/": 5000} {
		page := must.Get(f.Get(t.Context(), tools.Request{URL: s.at("a.example", path)}))(t)
		compare.Equal(t, path+": bytes, cut", []any{want, path == "/bomb"}, []any{len(page.Text), page.Cut})
	}
	page := must.Get(f.Get(t.Context(), tools.Request{URL: s.at("a.example", "/"), ToolSetting: core.ToolSetting{MaxBytes: 1000}}))(t)
	compare.Equal(t, "bytes, cut", []any{1000, true}, []any{len(page.Text), page.Cut})
	compare.True(t, compare.ErrorOf(f.Get(t.Context(), tools.Request{URL: s.at("a.example", "/header")})) != nil, "a header of 1 MiB: got no error")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	compare.Error(t, "after a cancel: want Canceled", context.Canceled, compare.ErrorOf(f.Get(ctx, tools.Request{URL: s.at("a.example", "/")})))
}

// What is not text is not read, and what the server says is told.
func TestAnswersThatAreNoPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if kind := r.URL.Query().Get("type"); kind != "" {
			w.Header().Set("Content-Type", kind)
		}
		switch r.URL.Path {
		case "/missing":
			http.NotFound(w, r)
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/image":
			w.Header()["Content-Type"] = nil
			_, _ = w.Write([]byte("\x89PNG\r\n\x1a\n0000"))
		case "/broken":
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("half"))
		default:
			_, _ = w.Write([]byte("{\"a\":1}"))
		}
	})
	f := tools.NewFetcher(s.options())
	for path, want := range map[string]string{
		"/missing":            "answered with status 404 Not Found",
		"/image":              `the page is "image/png", which is not text`,
		"/?type=video/mp4":    `the page is "video/mp4"`,
		"/?type=application/": `the page is "application/"`,
		"/broken":             "broke while",
	} {
		if page, err := f.Get(t.Context(), tools.Request{URL: s.at("a.example", path)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %+v, error %v, want %q", path, page, err, want)
		}
	}
	for _, kind := range []string{"application/json", "application/ld%2Bjson", "text/csv", "application/rss%2Bxml", "TEXT/PLAIN;%20charset=UTF-8"} {
		compare.Contains(t, kind, `"a"`, must.Get(f.Get(t.Context(), tools.Request{URL: s.at("a.example", "/?type="+kind)}))(t).Text)
	}
	// A server that nobody listens at, and a name that nobody has.
	l := must.Get(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	closed := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	o := s.options()
	o.Ports = []int{closed}
	if _, err := tools.NewFetcher(o).Get(t.Context(), tools.Request{URL: fmt.Sprintf("http://a.example:%d/", closed)}); err == nil ||
		err.Error() != "cannot read the page of a.example: the connection failed" {
		t.Errorf("nobody listens: got error %v", err)
	}
	o.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		return nil, errors.New("no such host in corp.internal")
	}
	if _, err := tools.NewFetcher(o).Get(t.Context(), tools.Request{URL: fmt.Sprintf("http://a.example:%d/", closed)}); err == nil ||
		strings.Contains(err.Error(), "internal") || !strings.Contains(err.Error(), "does not exist or is not public") {
		t.Errorf("no such name: got error %v", err)
	}
}
