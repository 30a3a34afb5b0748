package tools

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"bobbin/app/core"
	"bobbin/app/core/netguard"
)

// Limits that are not settings.
const (
	maxRedirects = 5
	maxURL       = 2048     // bytes
	maxHeader    = 64 << 10 // bytes of an answer's header
)

// FetcherOptions configure a Fetcher. Zero values mean the defaults.
type FetcherOptions struct {
	Time      time.Duration // of one fetch, redirects included; default 20 s
	Bytes     int64         // read of a page, after decompression; default 2 MiB
	Ports     []int         // allowed; default 80 and 443
	UserAgent string        // default Bobbin
	// Roots are the trusted certificate authorities; nil = the system's.
	Roots *x509.CertPool
	// Lookup resolves host names; nil = the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// ReadHTML returns the text of an HTML page in UTF-8, with its address.
	ReadHTML func(ctx context.Context, mediaType, address, page string) (core.WebPage, error)
	// Allow checks each address before a connection; nil = netguard.Public.
	Allow func(netip.Addr) error
}

// Fetcher reads public web pages for agents. The requests are not trusted: users
// and texts that an agent reads can cause them.
//
// The check of the address happens when the connection is opened (core/netguard), so that
// it also covers redirects and names that resolve differently the second time. A fetch has
// limits for time, bytes (of the page and of the connection), redirects and the resulting
// text; its connections are closed when its time is over. It sends no credentials, stores
// no cookies and uses no proxy, as it could not check the addresses behind a proxy.
//
// Text that a page hides from its readers is omitted, and the result says so. That does not
// protect against instructions in the visible text.
// Safe for concurrent use.
type Fetcher struct{ o FetcherOptions }

// NewFetcher returns a Fetcher.
func NewFetcher(o FetcherOptions) *Fetcher {
	o.Time, o.Bytes, o.UserAgent = cmp.Or(o.Time, 20*time.Second), cmp.Or(o.Bytes, 2<<20), cmp.Or(o.UserAgent, "Bobbin")
	if len(o.Ports) == 0 {
		o.Ports = []int{80, 443}
	}
	if o.Allow == nil {
		o.Allow = netguard.Public
	}
	return &Fetcher{o}
}

// Request is one fetch.
type Request struct {
	URL              string
	core.ToolSetting // its hosts (*.example.com is the subdomains), and its bytes and time in place of those of the Fetcher
}

// Page is the result of a fetch.
type Page struct {
	core.WebPage        // in valid UTF-8, and within the limit
	URL          string // after redirects
	MediaType    string // from the server, without parameters
}

// Get reads a page. Its errors are for the model: they say what is wrong with the
// request, and reveal nothing about the server's network.
func (f *Fetcher) Get(ctx context.Context, r Request) (Page, error) {
	target, err := url.Parse(strings.TrimSpace(r.URL))
	if err != nil || len(r.URL) > maxURL {
		return Page{}, fmt.Errorf("the URL is not valid; write for example https://example.com/page, in at most %d characters", maxURL)
	}
	x := exchange{FetcherOptions: f.o, hosts: r.AllowHosts}
	x.Time, x.Bytes = cmp.Or(time.Duration(r.Timeout), x.Time), cmp.Or(int64(r.MaxBytes), x.Bytes)
	if err := x.checkURL(target); err != nil {
		return Page{}, err
	}
	x.deadline = time.Now().Add(x.Time)
	ctx, cancel := context.WithDeadline(ctx, x.deadline)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return Page{}, x.explainError(ctx, target, err)
	}
	req.Header.Set("User-Agent", x.UserAgent)
	req.Header.Set("Accept", "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,application/xml;q=0.8")
	client := &http.Client{
		Transport: &http.Transport{
			DialContext:       netguard.Dialer{Until: x.deadline, Bytes: wireFactor*x.Bytes + wireBytes, Ports: x.Ports, Lookup: x.Lookup, Allow: x.Allow}.Dial,
			DisableKeepAlives: true, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxHeader,
			TLSClientConfig: &tls.Config{RootCAs: x.Roots, MinVersion: tls.VersionTLS12},
		},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return refusal(fmt.Sprintf("the page redirects more than %d times", maxRedirects))
			}
			next.Header.Del("Referer")
			return x.checkURL(next.URL)
		},
	}
	response, err := client.Do(req)
	if err != nil {
		return Page{}, x.explainError(ctx, target, err)
	}
	defer response.Body.Close()
	page, err := f.readPage(ctx, response, x.Bytes)
	if ctx.Err() != nil {
		return Page{}, x.explainError(ctx, target, ctx.Err())
	}
	return page, err
}

// readPage reads the page from a response, at most limit bytes, which also bound its text.
func (f *Fetcher) readPage(ctx context.Context, response *http.Response, limit int64) (Page, error) {
	page := Page{URL: response.Request.URL.String()}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return page, fmt.Errorf("%s answered with status %d %s", core.CleanText(core.Clip(page.URL, maxURL)), response.StatusCode, http.StatusText(response.StatusCode))
	}
	contentType := response.Header.Get("Content-Type")
	if contentType != "" && !isReadable(mediaType(contentType)) { // before reading it
		return page, unreadableError(mediaType(contentType))
	}
	if packed := response.Header.Get("Content-Encoding"); packed != "" && !strings.EqualFold(packed, "identity") {
		return page, fmt.Errorf("the page is compressed as %q, which is not supported", core.CleanText(core.Clip(packed, 100)))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return page, errors.New("the connection broke while the page was read")
	}
	if page.Cut = int64(len(body)) > limit; page.Cut {
		body = body[:limit]
	}
	if page.MediaType, body = decodeBody(body, contentType); !isReadable(page.MediaType) {
		return page, unreadableError(page.MediaType)
	}
	page.Text = strings.TrimSpace(string(body))
	if page.MediaType == "text/html" || page.MediaType == "application/xhtml+xml" {
		read, err := f.o.ReadHTML(ctx, page.MediaType, page.URL, string(body))
		if err != nil {
			return page, err
		}
		read.Cut = read.Cut || page.Cut
		page.WebPage = read
	}
	page.Title, page.Text = core.VisibleText(page.Title), core.VisibleText(page.Text)
	if len(page.Text) > int(limit) {
		page.Text, page.Cut = core.Clip(page.Text, int(limit)), true
	}
	page.Title = core.Clip(strings.Join(strings.Fields(page.Title), " "), maxTitle)
	return page, nil
}

// maxTitle bounds a title, in bytes.
const maxTitle = 300

// mediaType returns the type without its parameters, in lower case.
func mediaType(contentType string) string {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind, _, _ = strings.Cut(contentType, ";")
	}
	return core.CleanText(core.Clip(strings.ToLower(strings.TrimSpace(kind)), 100))
}

// isReadable reports whether content of this media type is text.
func isReadable(kind string) bool {
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") ||
		slices.Contains([]string{"application/json", "application/xml", "application/x-ndjson", "application/yaml", "application/x-yaml",
			"application/toml", "application/javascript"}, kind)
}

func unreadableError(kind string) error {
	return fmt.Errorf("the page is %q, which is not text; only HTML, other text, JSON and XML can be read", kind)
}

// decodeBody returns the body's media type, and a text in UTF-8: from the encoding that the server,
// a byte order mark or the page itself names; UTF-8 without any of them stays.
func decodeBody(body []byte, contentType string) (kind string, decoded []byte) {
	const sniffed = 1024
	if contentType == "" {
		contentType = http.DetectContentType(body)
	}
	if kind = mediaType(contentType); !isReadable(kind) {
		return kind, body
	}
	encoding, name, certain := charset.DetermineEncoding(body[:min(len(body), sniffed)], contentType)
	whole, broken := 0, 0
	for _, r := range string(body) {
		switch {
		case r == utf8.RuneError:
			broken++
		case r >= utf8.RuneSelf:
			whole++
		}
	}
	// UTF-8 has no more broken bytes than characters of several bytes, though it may be cut anywhere: texts in other
	// encodings hardly have such characters.
	if name != "utf-8" && (certain || broken > whole) {
		if text, err := encoding.NewDecoder().Bytes(body); err == nil {
			body = text
		}
	}
	return kind, []byte(core.CleanText(strings.TrimPrefix(string(body), "\ufeff")))
}
