package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/idna"

	"bobbin/app/core"
	"bobbin/app/core/netguard"
)

// exchange is one fetch, redirects included, with the bounds that it has.
type exchange struct {
	Options

	hosts []string  // that may be asked; empty = all
	until time.Time // when the time is over
}

// send asks for the page; every redirect is checked like the first address.
func (x *exchange) send(ctx context.Context, target *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", x.UserAgent)
	req.Header.Set("Accept", "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,application/xml;q=0.8")
	client := &http.Client{
		Transport: &http.Transport{
			DialContext: x.dial, DisableKeepAlives: true, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxHeader,
			TLSClientConfig: &tls.Config{RootCAs: x.Roots, MinVersion: tls.VersionTLS12},
		},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return refusal(fmt.Sprintf("the page redirects more than %d times", maxRedirects))
			}
			next.Header.Del("Referer")
			return x.check(next.URL)
		},
	}
	return client.Do(req)
}

// refusal is an error that may be shown as it is.
type refusal string

// Error returns what is refused.
func (r refusal) Error() string { return string(r) }

// check refuses addresses that are no public web pages by their look, and writes
// the host as it is asked for. Where the host really is, is checked when it is
// connected to.
func (x *exchange) check(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return refusal(fmt.Sprintf("only http and https can be read, not %q", core.Clip(u.Scheme, 20)))
	case len(u.String()) > maxURL:
		return refusal(fmt.Sprintf("the URL is longer than %d characters", maxURL))
	case u.User != nil:
		return refusal("the URL holds a user or a password; leave them out")
	case u.Hostname() == "":
		return refusal("the URL has no host; write for example https://example.com/page")
	case !slices.Contains(x.Ports, portOf(u)):
		return refusal(fmt.Sprintf("port %s cannot be reached; the ports are %s", core.Clip(u.Port(), 10), join(x.Ports)))
	case !plain(u):
		return refusal(fmt.Sprintf("the name of the host %q cannot be read", core.Clip(u.Hostname(), 100)))
	case len(x.hosts) > 0 && !allowed(u.Hostname(), x.hosts):
		return refusal(fmt.Sprintf("the host %s is not one that may be read; those are %s", core.Clip(u.Hostname(), 100), strings.Join(x.hosts, ", ")))
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && x.Allow(addr) != nil {
		return unreachable(u.Hostname())
	}
	return nil
}

// plain writes the host in ASCII, as it will be asked for: bücher.example is
// xn--bcher-kva.example, and digits of full width are those of an address. False: no
// host can have that name.
func plain(u *url.URL) bool {
	host := ascii(u.Hostname())
	if host == "" {
		return false
	}
	if host != u.Hostname() {
		if port := u.Port(); port != "" {
			host += ":" + port
		}
		u.Host = host
	}
	return true
}

// ascii returns the name of a host in ASCII; empty if there is no such name.
func ascii(host string) string {
	if strings.IndexFunc(host, func(r rune) bool { return r > '~' }) < 0 {
		return host
	}
	name, err := idna.Lookup.ToASCII(host)
	if err != nil {
		return ""
	}
	return name
}

// unreachable says the same of hosts that do not exist and of those that are not
// public: which names there are in the network here is nobody's business.
func unreachable(host string) error {
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

// allowed reports whether the host, in ASCII, is one of hosts.
func allowed(host string, hosts []string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(hosts, func(h string) bool {
		if below, ok := strings.CutPrefix(h, "*."); ok {
			return strings.HasSuffix(host, "."+strings.ToLower(ascii(below)))
		}
		return host == strings.ToLower(ascii(h))
	})
}

// explain returns an error of the exchange in words for the model.
func (x *exchange) explain(ctx context.Context, target *url.URL, err error) error {
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
	case errors.Is(err, netguard.ErrNotPublic), errors.Is(err, netguard.ErrNoHost):
		return unreachable(host)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the page was not there after %s", x.Time)
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return fmt.Errorf("the page of %s cannot be read: the connection failed", core.Clip(host, 100))
	}
}
