package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bobbin/app/core"
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
	// Lookup resolves host names; nil = the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Allow decides about each address that is connected to; nil = Public.
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
	if o.Lookup == nil {
		o.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if o.Allow == nil {
		o.Allow = Public
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
}

// Get reads a page. Its errors are for the model: they say what is wrong with the
// request, and nothing about the network that the program runs in.
func (f *Fetcher) Get(ctx context.Context, r Request) (Page, error) {
	target, err := url.Parse(strings.TrimSpace(r.URL))
	if err != nil || len(r.URL) > maxURL {
		return Page{}, fmt.Errorf("the URL cannot be read; write for example https://example.com/page, in at most %d characters", maxURL)
	}
	if err := f.check(target, r.Hosts); err != nil {
		return Page{}, err
	}
	limit, most := f.o.Time, f.o.Bytes
	if r.Time > 0 {
		limit = r.Time
	}
	if r.Bytes > 0 {
		most = r.Bytes
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	response, err := f.send(ctx, target, r.Hosts)
	if err != nil {
		return Page{}, f.explain(ctx, target, err, limit)
	}
	defer response.Body.Close()
	page, err := read(response, most)
	if err != nil && ctx.Err() != nil {
		err = f.explain(ctx, target, ctx.Err(), limit)
	}
	return page, err
}

// send asks for the page; every redirect is checked like the first address.
func (f *Fetcher) send(ctx context.Context, target *url.URL, hosts []string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", f.o.UserAgent)
	req.Header.Set("Accept", "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,application/xml;q=0.8")
	client := &http.Client{
		Transport: &http.Transport{
			DialContext: f.dial, DisableKeepAlives: true, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return refusal(fmt.Sprintf("the page redirects more than %d times", maxRedirects))
			}
			next.Header.Del("Referer")
			return f.check(next.URL, hosts)
		},
	}
	return client.Do(req)
}

// refusal is an error that may be shown as it is.
type refusal string

// Error returns what is refused.
func (r refusal) Error() string { return string(r) }

// check refuses addresses that are no public web pages by their look. Where the
// host really is, is checked when it is connected to.
func (f *Fetcher) check(u *url.URL, hosts []string) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return refusal(fmt.Sprintf("only http and https can be read, not %q", core.Clip(u.Scheme, 20)))
	case u.User != nil:
		return refusal("the URL holds a user or a password; leave them out")
	case u.Hostname() == "":
		return refusal("the URL has no host; write for example https://example.com/page")
	case !slices.Contains(f.o.Ports, portOf(u)):
		return refusal(fmt.Sprintf("port %s cannot be reached; the ports are %s", core.Clip(u.Port(), 10), join(f.o.Ports)))
	case len(hosts) > 0 && !allowed(u.Hostname(), hosts):
		return refusal(fmt.Sprintf("the host %s is not one that may be read; those are %s", core.Clip(u.Hostname(), 100), strings.Join(hosts, ", ")))
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && f.o.Allow(addr) != nil {
		return f.unreachable(u.Hostname())
	}
	return nil
}

// unreachable says the same of hosts that do not exist and of those that are not
// public: which names there are in the network here is nobody's business.
func (f *Fetcher) unreachable(host string) error {
	return refusal(fmt.Sprintf("the host %s does not exist, or is not public; only public web pages can be read", core.Clip(host, 100)))
}

func portOf(u *url.URL) int {
	switch {
	case u.Port() != "":
		n, err := strconv.Atoi(u.Port())
		if err != nil {
			return -1
		}
		return n
	case u.Scheme == "http":
		return 80
	default:
		return 443
	}
}

func join(ports []int) string {
	list := make([]string, 0, len(ports))
	for _, p := range ports {
		list = append(list, strconv.Itoa(p))
	}
	return strings.Join(list, ", ")
}

// allowed reports whether the host is one of hosts.
func allowed(host string, hosts []string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(hosts, func(h string) bool {
		h = strings.ToLower(h)
		if below, ok := strings.CutPrefix(h, "*."); ok {
			return strings.HasSuffix(host, "."+below)
		}
		return host == h
	})
}

// dial connects to the host. It resolves the name once and connects to addresses:
// what is checked is what is connected to.
func (f *Fetcher) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := f.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{ControlContext: f.control}
	for _, addr := range addrs {
		var conn net.Conn
		if conn, err = d.DialContext(ctx, network, net.JoinHostPort(addr.String(), port)); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

// maxAddresses bounds how many addresses of one name are tried.
const maxAddresses = 4

func (f *Fetcher) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	addrs, err := f.o.Lookup(ctx, host)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil || len(addrs) == 0:
		return nil, f.unreachable(host)
	}
	return addrs[:min(len(addrs), maxAddresses)], nil
}

// control runs after the address is known and before anything is sent to it.
func (f *Fetcher) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !slices.Contains(f.o.Ports, int(to.Port())) {
		return errNotPublic
	}
	return f.o.Allow(to.Addr())
}

// explain returns an error of the exchange in words for the model.
func (f *Fetcher) explain(ctx context.Context, target *url.URL, err error, limit time.Duration) error {
	host := target.Hostname()
	var failed *url.Error
	if errors.As(err, &failed) {
		if at, perr := url.Parse(failed.URL); perr == nil && at.Hostname() != "" {
			host = at.Hostname()
		}
	}
	var said refusal
	switch {
	case errors.As(err, &said):
		return said
	case errors.Is(err, errNotPublic):
		return f.unreachable(host)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the page was not there after %s", limit)
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return fmt.Errorf("the page of %s cannot be read: the connection failed", core.Clip(host, 100))
	}
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
