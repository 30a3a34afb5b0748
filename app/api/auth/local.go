package auth

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// isLoopback reports whether a peer's address, with its port, is of this machine.
func isLoopback(remote string) bool {
	addr, err := netip.ParseAddrPort(remote)
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// isLocalHost reports whether a Host header names this machine: localhost,
// 127.0.0.0/8 or [::1], with or without a port. Any other name may be one that
// somebody else's DNS points here.
func isLocalHost(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = unbracketed(host), "0"
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback()
}

// unbracketed returns a host without a port. Brackets belong to IPv6 addresses,
// and those need them: what breaks that is returned as no name at all.
func unbracketed(host string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if bracketed := name != host; bracketed != strings.Contains(name, ":") {
		return ""
	}
	return name
}

// isForwarded reports whether a proxy sent the request for somebody else. A
// proxy on this machine has a loopback address, its visitors have not. HTTP/1.0 is
// spoken by nobody else any more: nginx does by default, adds none of the headers, and
// has its own address for Host.
func isForwarded(r *http.Request) bool {
	if !r.ProtoAtLeast(1, 1) {
		return true
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded-") || slices.Contains(forwarding(), name) {
			return true
		}
	}
	return false
}

// forwarding are the other headers of proxies, as http.Header has them.
func forwarding() []string {
	return []string{"Cf-Connecting-Ip", "Fastly-Client-Ip", "Forwarded", "True-Client-Ip", "Via", "X-Client-Ip", "X-Envoy-External-Address", "X-Original-Host", "X-Real-Ip"}
}

// isForeignPage reports whether a browser sent the request for a page of another
// origin. Browsers say so by Origin, and on requests without one by
// Sec-Fetch-Site; following a link is not foreign.
func isForeignPage(r *http.Request) bool {
	if origins := r.Header.Values("Origin"); len(origins) > 0 {
		return len(origins) > 1 || !sameOrigin(origins[0], r)
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	default:
		return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Method != http.MethodGet
	}
}

// sameOrigin reports whether an Origin header is the server's own origin, as the
// browser sees it.
func sameOrigin(origin string, r *http.Request) bool {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == scheme && strings.EqualFold(u.Host, r.Host) &&
		u.Path == "" && u.RawQuery == "" && u.User == nil && u.Fragment == ""
}
