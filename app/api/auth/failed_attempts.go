package auth

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// CodeFailedAttempts means too many failed authentication attempts from an address.
const CodeFailedAttempts = "too_many_guesses"

// clientNetwork returns the bucket of a request: the client's IPv4 address or IPv6 /64
// network.
func (a *Authenticator) clientNetwork(r *http.Request) string {
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "unknown"
	}
	ip := a.clientAddr(addr.Addr().Unmap(), r.Header.Values("X-Forwarded-For"))
	if ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return "unknown"
	}
	return prefix.String()
}

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
