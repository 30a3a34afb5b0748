package tools_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
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
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// wantRefused checks that a page cannot be read, and what is said of it.
func wantRefused(t *testing.T, f *tools.Fetcher, r tools.Request, want string) {
	t.Helper()
	if page, err := f.Get(t.Context(), r); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %+v, error %v, want %q", r.URL, page, err, want)
	}
}

// No proxy of the environment is used: what it connects to could not be checked.
//
//nolint:paralleltest // it sets the environment
func TestNoProxy(t *testing.T) {
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, "by proxy")
	}))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	s := newSite(t, text("direct"))
	page := must.Get(tools.NewFetcher(s.options()).Get(t.Context(), tools.Request{URL: s.at("a.example", "/")}))(t)
	compare.Equal(t, "page, and how often the proxy was asked", []any{"direct", int64(0)}, []any{page.Text, asked.Load()})
}

// Names that only look like something else, and forms of addresses that others
// understand, come to the same check.
func TestUnicodeHosts(t *testing.T) {
	t.Parallel()
	s := newSite(t, text("here"))
	var asked atomic.Value
	o := s.options()
	o.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		asked.Store(host)
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	f := tools.NewFetcher(o)
	for host, want := range map[string]string{
		"bücher.example": "xn--bcher-kva.example", "BÜCHER.example": "xn--bcher-kva.example", "ａ.example": "a.example", "a。example": "a.example",
	} {
		page := must.Get(f.Get(t.Context(), tools.Request{URL: s.at(host, "/"), ToolSetting: core.ToolSetting{AllowHosts: []string{want}}}))(t)
		compare.True(t, asked.Load() == want && page.URL == s.at(want, "/"), "%s: asked for %v, page of %s, want %s", host, asked.Load(), page.URL, want)
		if _, err := f.Get(t.Context(), tools.Request{URL: s.at(host, "/"), ToolSetting: core.ToolSetting{AllowHosts: []string{"bücher.example", "*.ä.example"}}}); (err == nil) != (want != "a.example") {
			t.Errorf("%s, of bücher.example: got error %v", host, err)
		}
	}
	asked.Store("")
	strict := tools.NewFetcher(tools.FetcherOptions{Ports: []int{s.port}, Lookup: o.Lookup})
	for _, host := range []string{"１２７.０.０.１", "127。0。0。1", "①②⑦.0.0.1"} {
		wantRefused(t, strict, tools.Request{URL: s.at(host, "/")}, "does not exist or is not public")
	}
	for _, host := range []string{"evil.example／.a.example", "a\u202eb.example", "a b.example", "127%2e0.0.1"} {
		wantRefused(t, f, tools.Request{URL: s.at(host, "/")}, "is not valid")
	}
	compare.True(t, asked.Load() == "", "%v was looked up", asked.Load())
}

// secure is a site with certificates for a.example, over HTTP/2 if it can be had.
func secure(t *testing.T, handler http.HandlerFunc) (*site, tools.FetcherOptions) {
	t.Helper()
	s := &site{Server: httptest.NewUnstartedServer(handler)}
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	u := must.Get(url.Parse(s.URL))(t)
	s.port = must.Get(strconv.Atoi(u.Port()))(t)
	o := s.options()
	o.Roots = x509.NewCertPool()
	o.Roots.AddCert(s.Certificate())
	return s, o
}

// HTTPS is HTTP/2 where the server has it, with the same bounds; who cannot prove
// the name that was asked for is not read.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s, o := secure(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			<-release
		case "/header":
			w.Header().Set("X-Large", strings.Repeat("x", 1<<20))
		case "/endless":
			for {
				if _, err := w.Write(bytes.Repeat([]byte("y"), 1<<16)); err != nil {
					return
				}
			}
		default:
			_, _ = io.WriteString(w, r.Proto)
		}
	})
	defer close(release)
	at := func(host, path string) tools.Request {
		return tools.Request{URL: fmt.Sprintf("https://%s:%d%s", host, s.port, path)}
	}
	f := tools.NewFetcher(o)
	compare.Equal(t, "page.Text: want HTTP/2", "HTTP/2.0", must.Get(f.Get(t.Context(), at("example.com", "/")))(t).Text)
	page := must.Get(f.Get(t.Context(), at("example.com", "/endless")))(t)
	compare.Equal(t, "endless: cut, bytes", []any{true, 2 << 20}, []any{page.Cut, len(page.Text)})
	wantRefused(t, f, at("example.com", "/header"), "the connection failed")
	slow := at("example.com", "/slow")
	slow.Timeout = core.Duration(200 * time.Millisecond)
	wantRefused(t, f, slow, "the page did not arrive within 200ms")
	wantRefused(t, f, at("other.example", "/"), "the connection failed") // not in the certificate
	o.Roots = nil
	wantRefused(t, tools.NewFetcher(o), at("example.com", "/"), "the connection failed") // of nobody known
}

// A fetch leaves nothing behind: also a connection whose handshake never ends is
// closed when its time is over.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	closed := make(chan error, 1)
	o, at := raw(t, func(w io.Writer) error {
		_, err := io.Copy(io.Discard, w.(io.Reader))
		closed <- err
		return err
	})
	wantRefused(t, tools.NewFetcher(o), tools.Request{URL: strings.Replace(at, "http:", "https:", 1), ToolSetting: core.ToolSetting{Timeout: core.Duration(100 * time.Millisecond)}}, "not arrive within 100ms")
	if err := <-closed; err != nil {
		t.Errorf("the connection ended with %v, want that it was closed", err)
	}
}

// raw answers every connection with what the function writes, and says how much.
func raw(t *testing.T, answer func(io.Writer) error) (tools.FetcherOptions, string) {
	t.Helper()
	l := must.Get(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				_ = answer(conn)
			}()
		}
	}()
	s := &site{port: l.Addr().(*net.TCPAddr).Port}
	return s.options(), s.at("a.example", "/")
}

// repeat writes the same again and again, until nobody reads it.
func repeat(w io.Writer, s string) error {
	many := []byte(strings.Repeat(s, 1+(64<<10)/len(s)))
	for {
		if _, err := w.Write(many); err != nil {
			return err
		}
	}
}

// A server that does not keep to HTTP, or never comes to an end, is left; how much it
// may send until then is bounded, too, not only the time.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
	var empty bytes.Buffer
	_ = gzip.NewWriter(&empty).Close()
	for name, tt := range map[string]struct {
		answer func(io.Writer) error
		want   string
	}{
		"endless header line": {func(w io.Writer) error { return repeat(w, "x") }, "the connection failed"},
		"endless promises":    {func(w io.Writer) error { return repeat(w, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n") }, "the connection failed"},
		"packed nothing without end": {func(w io.Writer) error {
			_, _ = io.WriteString(w, head+"Content-Encoding: gzip\r\n\r\n")
			return repeat(w, empty.String())
		}, "broke while"},
		"chunks with endless notes": {func(w io.Writer) error {
			_, _ = io.WriteString(w, head+"Transfer-Encoding: chunked\r\n\r\n")
			return repeat(w, "1;"+strings.Repeat("n", 4000)+"\r\nx\r\n")
		}, "broke while"},
		"another packing": {func(w io.Writer) error {
			_, err := io.WriteString(w, head+"Content-Encoding: br\r\nContent-Length: 1\r\n\r\nx")
			return err
		}, `compressed as "br"`},
		"a redirect to nowhere": {func(w io.Writer) error {
			_, err := io.WriteString(w, "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n")
			return err
		}, "status 302"},
		"a redirect to a file": {func(w io.Writer) error {
			_, err := io.WriteString(w, "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n")
			return err
		}, `only http and https can be read, not "file"`},
		"a long redirect": {func(w io.Writer) error {
			_, err := io.WriteString(w, "HTTP/1.1 302 Found\r\nLocation: /"+strings.Repeat("x", 10_000)+"\r\nContent-Length: 0\r\n\r\n")
			return err
		}, "longer than 2048"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent atomic.Int64
			o, at := raw(t, func(w io.Writer) error {
				// Without this the answer could be lost when the connection is closed.
				if _, err := http.ReadRequest(bufio.NewReader(w.(io.Reader))); err != nil {
					return err
				}
				return tt.answer(&countedWriter{w, &sent})
			})
			o.Bytes, o.Time = 64<<10, time.Minute // whoever is left when the time is over has sent too much
			wantRefused(t, tools.NewFetcher(o), tools.Request{URL: at}, tt.want)
			n := sent.Load()
			compare.True(t, n <= 16<<20, "%d bytes were taken", n)
		})
	}
}

// countedWriter counts what is written.
type countedWriter struct {
	io.Writer
	n *atomic.Int64
}

func (w *countedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.n.Add(int64(n))
	return n, err
}
