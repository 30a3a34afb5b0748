package auth

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// isLoopback reports whether a peer's host:port is a loopback address.
func isLoopback(remote string) bool {
	addr, err := netip.ParseAddrPort(remote)
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// isLocalHost reports whether a Host header names this machine: localhost,
// 127.0.0.0/8 or [::1], with or without a port. Any other name may be an attacker's
// that resolves to this machine. Brackets around a name, which no browser sends, make no difference.
func isLocalHost(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	addr, err := netip.ParseAddr(name)
	return strings.EqualFold(name, "localhost") || err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback()
}

// isForwarded reports whether a proxy forwarded the request. A proxy on this machine has
// a loopback address, but its clients do not. HTTP/1.0 means a proxy too: nginx uses it by
// default, adds none of the headers, and sends its own address as Host.
func isForwarded(r *http.Request) bool {
	if !r.ProtoAtLeast(1, 1) {
		return true
	}
	// Prefixes of the headers that proxies, load balancers and content delivery networks add, in canonical form.
	prefixes := []string{
		"Akamai-", "Cdn-Loop", "Cf-", "Client-Ip", "Do-Connecting-Ip", "Fastly-", "Fly-", "Forwarded", "Incap-Client-Ip", "True-Client-Ip", "Via",
		"X-Amzn-", "X-Appengine-", "X-Arr-", "X-Azure-", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Envoy-", "X-Forwarded", "X-Host",
		"X-Ms-Forwarded", "X-Nf-", "X-Original-", "X-Originating-Ip", "X-Real-Ip", "X-Remote-Addr", "X-Remote-Ip", "X-Sucuri-", "X-Vercel-",
	}
	for name := range r.Header {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return true
		}
	}
	return false
}

// isForeignPage reports whether a page of another origin made the browser send the request.
// Browsers say so in Origin, and without it in Sec-Fetch-Site; following a link is allowed.
func isForeignPage(r *http.Request) bool {
	if origins := r.Header.Values("Origin"); len(origins) > 0 {
		own := "http://" + r.Host
		if r.TLS != nil {
			own = "https://" + r.Host
		}
		return len(origins) > 1 || !strings.EqualFold(origins[0], own)
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	default:
		return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Method != http.MethodGet
	}
}

// CodeFailedAttempts means too many failed authentication attempts from an address.
const CodeFailedAttempts = "too_many_guesses"

// clientAddr returns the client address of a request from the peer: the peer itself, or
// behind trusted proxies the last address in X-Forwarded-For that is not trusted. Earlier
// addresses can be forged.
func (a *Authenticator) clientAddr(peer netip.Addr, forwarded []string) netip.Addr {
	if !a.isTrusted(peer) {
		return peer
	}
	hops := strings.Split(strings.Join(forwarded, ","), ",")
	for _, hop := range slices.Backward(hops) {
		hop = strings.TrimSpace(hop)
		addr, err := netip.ParseAddr(strings.Trim(hop, "[]"))
		if with, ok := netip.ParseAddrPort(hop); ok == nil {
			addr, err = with.Addr(), nil
		}
		if err != nil {
			return peer
		}
		if peer = addr.WithZone("").Unmap(); !a.isTrusted(peer) {
			return peer
		}
	}
	return peer
}

func (a *Authenticator) isTrusted(addr netip.Addr) bool {
	return slices.ContainsFunc(a.Proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}
