package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/quota"
)

// Options configure an Authenticator.
type Options struct {
	Keys   []Key   // of the configuration
	Stored *Stored // keys of the database; nil = none
	// VerifyToken verifies a signed token of an end user (Verifier.Identify); nil = no tokens.
	VerifyToken func(ctx context.Context, token string) (core.Identity, error)
	Required    bool // requests without a key are refused, also from this machine
	// LocalToken authenticates the command line on this machine as core.LocalOwner;
	// empty = no such token.
	LocalToken string
	// GuessesPerMinute limits failed authentication attempts per client address; 0 = no
	// limit.
	GuessesPerMinute int
	// Proxies are trusted to name the client address in X-Forwarded-For.
	Proxies []netip.Prefix
}

// Authenticator authenticates requests. Safe for concurrent use.
type Authenticator struct {
	Options
	token    *Key
	failures *quota.Buckets // by client address
}

// New returns an authenticator.
func New(o Options) *Authenticator {
	a := &Authenticator{Options: o, failures: quota.NewBuckets(float64(o.GuessesPerMinute)/60, o.GuessesPerMinute)}
	if o.LocalToken != "" {
		a.token = new(NewKey(core.LocalOwner, o.LocalToken, core.Everything))
	}
	return a
}

// Authenticate returns the caller's identity. Errors are core.ErrUnauthorized (the key is
// missing or unknown), core.ErrForbidden (the request breaks the rules for requests without
// a key) and core.ErrRateLimited (too many failed attempts from the address).
func (a *Authenticator) Authenticate(r *http.Request) (core.Identity, error) {
	who, err := a.identifyCaller(r)
	var shown *core.Error
	switch {
	case errors.As(err, &shown) && shown.Code == core.CodeTokenExpired: // not a guess
		return core.Identity{}, err
	case errors.Is(err, core.ErrUnauthorized), errors.Is(err, core.ErrForbidden):
		// Only failures are limited: valid requests may come from the same address, as through a proxy,
		// and 256 bits cannot be guessed.
		addr, _ := netip.ParseAddrPort(r.RemoteAddr) // those without one share a bucket
		ip, bits := a.clientAddr(addr.Addr().Unmap(), r.Header.Values("X-Forwarded-For")), 64
		if ip.Is4() {
			bits = 32
		}
		network, _ := ip.WithZone("").Prefix(bits)
		if wait := a.failures.Take(network.String()); wait > 0 {
			err = &core.Error{Kind: core.ErrRateLimited, Code: CodeFailedAttempts, RetryAfter: max(wait, time.Second),
				Message: "too many requests without a valid API key from this address; send a valid key, or wait (the operator can raise limits.guesses_per_minute)"}
		}
		return core.Identity{}, err
	default:
		return who, err
	}
}

func (a *Authenticator) identifyCaller(r *http.Request) (core.Identity, error) {
	secret, err := secretOf(r)
	switch {
	case err != nil:
		return core.Identity{}, err
	case secret != "":
		who, err := a.bySecret(r, secret)
		if errors.Is(err, core.ErrUnauthorized) && a.takesAnySecret(r) {
			return localIdentity(), a.checkLocal(r)
		}
		return who, err
	case a.Required:
		return core.Identity{}, unauthorizedError("send an API key, as Authorization: Bearer … or X-API-Key")
	case len(r.Header.Values("Authorization"))+len(r.Header.Values("X-API-Key")) > 0 && isLoopback(r.RemoteAddr) && !a.takesAnySecret(r):
		return core.Identity{}, unauthorizedError("the API key is empty; send one, or no such header to use this machine's own data")
	default:
		return localIdentity(), a.checkLocal(r)
	}
}

// localIdentity returns who calls from this machine without a key.
func localIdentity() core.Identity {
	return core.Identity{Owner: core.LocalOwner, Rights: core.Everything}
}

// takesAnySecret reports whether a secret means nothing, because there are no keys and the
// request comes from this machine: SDKs of providers always send one.
func (a *Authenticator) takesAnySecret(r *http.Request) bool {
	if a.Required || a.VerifyToken != nil || len(a.Keys) > 0 || !isLoopback(r.RemoteAddr) {
		return false
	}
	if a.Stored == nil {
		return true
	}
	keys, err := a.Stored.store.List(r.Context()) // with those that were revoked
	return err == nil && len(keys) == 0
}

// Lapsed returns which stored keys are no longer valid, and why: for long-lived requests.
func (a *Authenticator) Lapsed(ctx context.Context, ids []core.KeyID) (map[core.KeyID]error, error) {
	if a.Stored == nil {
		return nil, nil
	}
	keys, err := a.Stored.store.ByIDs(ctx, ids)
	if err != nil {
		return nil, err
	}
	out, now := map[core.KeyID]error{}, time.Now()
	for _, id := range ids {
		out[id] = unknownKeyError()
	}
	for _, key := range keys {
		delete(out, key.ID)
		if why := keyError(key, now); why != nil {
			out[key.ID] = why
		}
	}
	return out, nil
}

// secretOf returns the secret of the request, "" without one or for "Bearer" alone, as from an
// unset shell variable. Clients may send one secret in both headers. Different
// ones are refused, because a proxy might have checked a different one.
func secretOf(r *http.Request) (string, error) {
	bearers, keys := r.Header.Values("Authorization"), r.Header.Values("X-API-Key")
	if len(bearers) > 1 || len(keys) > 1 {
		return "", severalSecretsError()
	}
	key := strings.TrimSpace(r.Header.Get("X-API-Key"))
	header := r.Header.Get("Authorization")
	if header == "" {
		return key, nil
	}
	scheme, secret, _ := strings.Cut(header, " ")
	secret = strings.TrimSpace(secret)
	switch {
	case len(keys) > 0 && secret != key:
		return "", severalSecretsError()
	case !strings.EqualFold(scheme, "Bearer"):
		return "", unauthorizedError("the Authorization header must be: Bearer <key>")
	}
	return secret, nil
}

func severalSecretsError() error {
	return unauthorizedError("send one key, in one header: Authorization or X-API-Key")
}

func (a *Authenticator) bySecret(r *http.Request, secret string) (core.Identity, error) {
	sum := sha256.Sum256([]byte(secret))
	var found *Key
	for i := range a.Keys { // all of them, so that timing does not reveal which one matched
		if a.Keys[i].matchesSum(sum) {
			found = &a.Keys[i]
		}
	}
	switch {
	case found != nil: // which may look like a token
		return core.Identity{Owner: found.name, Key: found.name, Rights: found.rights}, nil
	case a.VerifyToken != nil && strings.HasPrefix(secret, "e") && strings.Count(secret, ".") == 2: // the first part is a JSON object in base64
		return a.VerifyToken(r.Context(), secret)
	}
	// The token is valid only on this machine.
	if a.token != nil && a.token.matchesSum(sum) && isLoopback(r.RemoteAddr) {
		return core.Identity{Owner: core.LocalOwner, Operator: true, Rights: core.Everything}, nil
	}
	if a.Stored == nil {
		return core.Identity{}, unknownKeyError()
	}
	key, err := a.Stored.findKey(r.Context(), secret)
	if err != nil {
		return core.Identity{}, err
	}
	return core.Identity{Owner: key.Owner, Key: key.Name, KeyID: key.ID, Rights: key.Rights}, nil
}

// checkLocal checks the rules for a request without a key.
func (a *Authenticator) checkLocal(r *http.Request) error {
	switch {
	case !isLoopback(r.RemoteAddr) && (len(a.Keys) > 0 || a.Stored != nil):
		return unauthorizedError("send an API key, as Authorization: Bearer … or X-API-Key")
	case !isLoopback(r.RemoteAddr):
		return forbiddenError("no API keys are configured, so only this machine has access; set auth.keys to allow others")
	case !isLocalHost(r.Host):
		return forbiddenError("without an API key the Host must be localhost or a loopback address")
	case isForwarded(r):
		return forbiddenError("a request through a proxy needs an API key; create one with: bobbin keys create <name>")
	case isForeignPage(r):
		return forbiddenError("a request from a web page of another origin needs an API key")
	default:
		return nil
	}
}

// unknownKeyError returns the error for an unknown secret, which it does not repeat.
func unknownKeyError() error { return unauthorizedError("unknown API key") }

func unauthorizedError(message string) error { return core.Errorf(core.ErrUnauthorized, "%s", message) }
func forbiddenError(message string) error    { return core.Errorf(core.ErrForbidden, "%s", message) }

// Key is an API key of the configuration. Several keys may have the same name and act for
// the same owner, so that a secret can be rotated without downtime.
type Key struct {
	name   string
	sum    [sha256.Size]byte
	rights core.Scopes
}

// NewKey returns the key of the owner name; it does not keep the secret. The name must
// not be empty. The name core.LocalOwner gives access to data created without keys.
func NewKey(name, secret string, rights core.Scopes) Key {
	return Key{name: name, sum: sha256.Sum256([]byte(secret)), rights: rights}
}

// HashedKey returns the key of the owner name whose secret has that SHA-256 sum.
func HashedKey(name string, sum [sha256.Size]byte, rights core.Scopes) Key {
	return Key{name: name, sum: sum, rights: rights}
}

// NewToken returns a random token for Options.LocalToken. It panics if the
// system's random source fails.
func NewToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// matchesSum reports whether the sum is of this key's secret, in constant time.
func (k Key) matchesSum(sum [sha256.Size]byte) bool {
	return subtle.ConstantTimeCompare(k.sum[:], sum[:]) == 1
}

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
