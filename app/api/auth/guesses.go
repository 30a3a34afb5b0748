package auth

import (
	"crypto/sha256"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"bobbin/app/api/rate"
	"bobbin/app/core"
)

// CodeGuesses tells that too many requests without a good key came from an address.
const CodeGuesses = "too_many_guesses"

// guesses holds addresses up from which too many requests without a good key came. Who
// was let in before is not: others may come from the same address, as through a proxy.
// Safe for concurrent use.
type guesses struct {
	buckets *rate.Buckets
	proxies []netip.Prefix // whose X-Forwarded-For is believed

	mu   sync.Mutex
	good map[[sha256.Size]byte]struct{} // sums of secrets that opened something; guarded by mu
}

// newGuesses returns what lets so many through each minute; 0 = any number.
func newGuesses(perMinute int, proxies []netip.Prefix) *guesses {
	return &guesses{proxies: proxies, buckets: rate.New(float64(perMinute)/60, perMinute), good: map[[sha256.Size]byte]struct{}{}}
}

// check returns ErrRateLimited for a secret that was never good, from an address that
// has used up its guesses.
func (g *guesses) check(r *http.Request, secret string) error {
	wait := g.buckets.Look(g.network(r))
	if wait == 0 || g.known(secret) {
		return nil
	}
	return &core.Error{Kind: core.ErrRateLimited, Code: CodeGuesses, RetryAfter: max(wait, time.Second),
		Message: "too many requests without a valid API key came from this address; wait, and send a valid one (the operator can raise limits.guesses_per_minute)"}
}

// result notes how a secret did.
func (g *guesses) result(r *http.Request, secret string, good bool) {
	if g.buckets == nil {
		return
	}
	if !good {
		g.buckets.Take(g.network(r))
		return
	}
	sum := sha256.Sum256([]byte(secret))
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.good) >= remembered {
		clear(g.good)
	}
	g.good[sum] = struct{}{}
}

func (g *guesses) known(secret string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.good[sha256.Sum256([]byte(secret))]
	return ok
}

// network is whose bucket a request's is: its address, of IPv6 the 64 bits that one
// household has.
func (g *guesses) network(r *http.Request) string {
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "unknown"
	}
	ip := g.sender(addr.Addr().Unmap(), r.Header.Values("X-Forwarded-For"))
	if ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return "unknown"
	}
	return prefix.String()
}

// sender returns who sent a request that came from the address: that itself, or behind
// trusted proxies the last one whom they name and do not trust. What stands before it
// anybody can have written.
func (g *guesses) sender(peer netip.Addr, forwarded []string) netip.Addr {
	if !g.trusts(peer) {
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
		if peer = addr.WithZone("").Unmap(); !g.trusts(peer) {
			return peer
		}
	}
	return peer
}

func (g *guesses) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(g.proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}
