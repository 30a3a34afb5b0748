package fetch

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/netguard"
)

// The bounds of a fetch that are not settings.
const (
	maxRedirects = 5
	maxURL       = 2048     // bytes
	maxHeader    = 64 << 10 // bytes of an answer's header
)

// Options are what a Fetcher is made of. Zero values mean the defaults.
type Options struct {
	Time      time.Duration // of one fetch, redirects included; default 20 s
	Bytes     int64         // read of a page, after decompression; default 2 MiB
	Ports     []int         // that may be connected to; default 80 and 443
	UserAgent string        // default Bobbin
	// Roots are whose certificates are believed; nil = the system's.
	Roots *x509.CertPool
	// Lookup resolves host names; nil = the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Allow decides about each address that is connected to; nil = netguard.Public.
	Allow func(netip.Addr) error
}

func (o Options) withDefaults() Options {
	if o.Time <= 0 {
		o.Time = 20 * time.Second
	}
	if o.Bytes <= 0 {
		o.Bytes = 2 << 20
	}
	if len(o.Ports) == 0 {
		o.Ports = []int{80, 443}
	}
	if o.UserAgent == "" {
		o.UserAgent = "Bobbin"
	}
	if o.Allow == nil {
		o.Allow = netguard.Public
	}
	return o
}

// Fetcher reads web pages. Safe for concurrent use.
type Fetcher struct{ o Options }

// New returns a Fetcher.
func New(o Options) *Fetcher { return &Fetcher{o.withDefaults()} }

// Request is one fetch.
type Request struct {
	URL   string
	Hosts []string      // that may be asked: example.com, or *.example.com for those below it; empty = all
	Bytes int64         // instead of Options.Bytes; 0 = that
	Time  time.Duration // instead of Options.Time; 0 = that
}

// Page is what was read.
type Page struct {
	URL       string // where it was in the end
	Title     string // one line; empty = none
	MediaType string // as the server says it, without parameters
	Text      string // readable text, valid UTF-8
	Cut       bool   // the page was longer than may be read
	Hid       bool   // text was left out that the page does not show to its readers
}

// Get reads a page. Its errors are for the model: they say what is wrong with the
// request, and nothing about the network that the program runs in.
func (f *Fetcher) Get(ctx context.Context, r Request) (Page, error) {
	target, err := url.Parse(strings.TrimSpace(r.URL))
	if err != nil || len(r.URL) > maxURL {
		return Page{}, fmt.Errorf("the URL cannot be read; write for example https://example.com/page, in at most %d characters", maxURL)
	}
	x := exchange{Options: f.o, hosts: r.Hosts}
	if r.Time > 0 {
		x.Time = r.Time
	}
	if r.Bytes > 0 {
		x.Bytes = r.Bytes
	}
	if err := x.check(target); err != nil {
		return Page{}, err
	}
	x.until = time.Now().Add(x.Time)
	ctx, cancel := context.WithDeadline(ctx, x.until)
	defer cancel()
	response, err := x.send(ctx, target)
	if err != nil {
		return Page{}, x.explain(ctx, target, err)
	}
	defer response.Body.Close()
	page, err := read(response, x.Bytes)
	if err != nil && ctx.Err() != nil {
		err = x.explain(ctx, target, ctx.Err())
	}
	return page, err
}

// read makes a page of the answer, in at most that many bytes.
func read(response *http.Response, most int64) (Page, error) {
	page := Page{URL: response.Request.URL.String()}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return page, fmt.Errorf("%s answered with status %d %s", core.CleanText(core.Clip(page.URL, maxURL)), response.StatusCode, http.StatusText(response.StatusCode))
	}
	contentType := response.Header.Get("Content-Type")
	if contentType != "" && !readable(mediaType(contentType)) { // without reading it
		return page, unreadable(mediaType(contentType))
	}
	if packed := response.Header.Get("Content-Encoding"); packed != "" && !strings.EqualFold(packed, "identity") {
		return page, fmt.Errorf("the page is packed as %q, which was not asked for and cannot be read", core.CleanText(core.Clip(packed, 100)))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err != nil {
		return page, errors.New("the page broke off while it was read")
	}
	if page.Cut = int64(len(body)) > most; page.Cut {
		body = body[:most]
	}
	if contentType == "" {
		contentType = http.DetectContentType(body)
	}
	if page.MediaType = mediaType(contentType); !readable(page.MediaType) {
		return page, unreadable(page.MediaType)
	}
	return page.fill(decoded(body, contentType), response.Request.URL, int(most)), nil
}
