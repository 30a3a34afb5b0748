package tools

import (
	"context"
	"errors"
	"fmt"
	"net"
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

// exchange is one fetch, redirects included, with its limits.
type exchange struct {
	FetcherOptions

	hosts    []string // allowed; empty = all
	deadline time.Time
}

// refusal is an error whose text may be shown.
type refusal string

// Error returns the text.
func (r refusal) Error() string { return string(r) }

// checkURL refuses addresses that cannot be public web pages, and converts the host to
// ASCII. The Dialer checks the addresses of the host.
func (x *exchange) checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return refusal(fmt.Sprintf("only http and https can be read, not %q", core.Clip(u.Scheme, 20)))
	case len(u.String()) > maxURL:
		return refusal(fmt.Sprintf("the URL is longer than %d characters", maxURL))
	case u.User != nil:
		return refusal("the URL contains a user or a password; remove them")
	case u.Hostname() == "":
		return refusal("the URL has no host; write for example https://example.com/page")
	case !slices.Contains(x.Ports, portOf(u)):
		list := make([]string, 0, len(x.Ports))
		for _, p := range x.Ports {
			list = append(list, strconv.Itoa(p))
		}
		return refusal(fmt.Sprintf("port %s is not allowed; the ports are %s", core.Clip(u.Port(), 10), strings.Join(list, ", ")))
	case !toASCIIHost(u):
		return refusal(fmt.Sprintf("the host name %q is not valid", core.Clip(u.Hostname(), 100)))
	case len(x.hosts) > 0 && !isAllowedHost(u.Hostname(), x.hosts):
		return refusal(fmt.Sprintf("the host %s is not allowed; the hosts are %s", core.Clip(u.Hostname(), 100), strings.Join(x.hosts, ", ")))
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && x.Allow(addr) != nil {
		return unreachableError(u.Hostname())
	}
	return nil
}

// toASCIIHost converts the host of u to ASCII: bücher.example is xn--bcher-kva.example, and
// full-width digits are those of an address. False: the name is not valid.
func toASCIIHost(u *url.URL) bool {
	host := asciiHost(u.Hostname())
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

// asciiHost returns the name of a host in ASCII; empty = not valid.
func asciiHost(host string) string {
	if strings.IndexFunc(host, func(r rune) bool { return r > '~' }) < 0 {
		return host
	}
	name, err := idna.Lookup.ToASCII(host)
	if err != nil {
		return ""
	}
	return name
}

// unreachableError is the same for hosts that do not exist and for hosts that are not
// public, so that it reveals no names of the internal network.
func unreachableError(host string) error {
	return refusal(fmt.Sprintf("the host %s does not exist or is not public; only public web pages can be read", core.Clip(host, 100)))
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

// isAllowedHost reports whether hosts contain the host, which is in ASCII.
func isAllowedHost(host string, hosts []string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return slices.ContainsFunc(hosts, func(h string) bool {
		if below, ok := strings.CutPrefix(h, "*."); ok {
			return strings.HasSuffix(host, "."+strings.ToLower(asciiHost(below)))
		}
		return host == strings.ToLower(asciiHost(h))
	})
}

// explainError translates an error of the exchange for the model.
func (x *exchange) explainError(ctx context.Context, target *url.URL, err error) error {
	host := target.Hostname()
	var failed *url.Error
	if errors.As(err, &failed) {
		if at, perr := url.Parse(failed.URL); perr == nil && at.Hostname() != "" {
			host = at.Hostname()
		}
	}
	var refused refusal
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, netguard.ErrNotPublic), errors.Is(err, netguard.ErrNoHost):
		return unreachableError(host)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the page did not arrive within %s", x.Time)
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return fmt.Errorf("cannot read the page of %s: the connection failed", core.Clip(host, 100))
	}
}

// Limits for the bytes of one connection: a page that is sent in small chunks needs
// several bytes for each of its own.
const (
	wireFactor = 8
	wireBytes  = 1 << 20
)

// dial connects to a host of the fetch.
func (x *exchange) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := netguard.Dialer{Until: x.deadline, Bytes: wireFactor*x.Bytes + wireBytes, Ports: x.Ports, Lookup: x.Lookup, Allow: x.Allow}
	return d.Dial(ctx, network, address)
}
