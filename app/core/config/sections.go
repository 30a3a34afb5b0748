package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"bobbin/app/core"
)

// Metrics is who may read /metrics. They tell what all owners together use, so an
// API key does not suffice by itself. Who calls from this machine without a key may
// read them, unless keys are required.
type Metrics struct {
	Open bool     `key:"open"` // everybody may
	Keys []string `key:"keys"` // names of the API keys that may
}

// Telemetry is where traces go.
type Telemetry struct {
	OTLPEndpoint string `key:"otlp_endpoint"` // base URL of a receiver of OTLP over HTTP; empty = as OpenTelemetry's own variables say
}

// validateMetrics checks that the keys exist, and where traces go.
func (c Config) validateMetrics(found *faults) {
	for _, name := range c.Metrics.Keys {
		known := slices.ContainsFunc(c.Auth.Keys, func(k APIKey) bool { return k.Name == name })
		found.checkKey(known, "metrics.keys", "there is no API key %q; name one of auth.keys", name)
	}
	at := c.Telemetry.OTLPEndpoint
	found.checkKey(at == "" || isAddress(at) && !strings.ContainsAny(at, "?#"), "telemetry.otlp_endpoint", "this is not an address; write for example http://localhost:4318")
}

// Files bound the images and files in messages.
type Files struct {
	Bytes      Bytes    `key:"bytes" range:"1KiB..256MiB"` // of one
	PerMessage int      `key:"per_message" range:"1..100"` // of one message
	TotalBytes Bytes    `key:"total_bytes"`                // of all that one owner has; the same content counts once
	UserBytes  Bytes    `key:"user_bytes" range:"1KiB.."`  // of all that one end user has
	Types      []string `key:"types"`                      // media types such as image/png or text/*
	NativePDF  string   `key:"native_pdf" words:"scanned,always,never"`
}

// officeTypes begins the media types of Word, Excel and PowerPoint.
const officeTypes = "application/vnd.openxmlformats-officedocument."

// mediaType matches a media type, or all of a family.
var mediaType = regexp.MustCompile(`^[a-z0-9][a-z0-9.+-]*/(\*|[a-z0-9][a-z0-9.+-]*)$`)

func (f Files) validate(found *faults) {
	found.checkKey(f.TotalBytes >= f.Bytes, "files.total_bytes", "%s is less than files.bytes (%s): no file of that size could be kept", f.TotalBytes, f.Bytes)
	for _, t := range f.Types {
		found.checkKey(mediaType.MatchString(t), "files.types", "%q is not a media type; write for example image/png or text/*", t)
	}
}

// Retention is how long things are kept that could be removed; 0 = for ever. An hour is longer than
// clients wait before they come back, and than a message waits for its answer.
type Retention struct {
	Events           time.Duration `key:"events" range:"0|1h.."`            // durable events; the newest of each session stays
	ArchivedSessions time.Duration `key:"archived_sessions" range:"0|1h.."` // after they were archived
}

// Webhooks is how the ends of runs are told to other programs.
type Webhooks struct {
	Secret       Secret        `key:"secret" flag:"-"`            // signs where a webhook has none of its own; empty = it is not signed then
	AllowPrivate bool          `key:"allow_private"`              // also http, and addresses that are not public
	Time         time.Duration `key:"time" range:"100ms..50s"`    // of one request; less than the lease of a delivery
	Concurrent   int           `key:"concurrent" range:"1..1000"` // requests at once in this process
}

// validateSpendLimits checks that each limit is of an owner and limits something. Keys
// in the database have owners that nobody knows here.
func (c Config) validateSpendLimits(found *faults) {
	seen := map[string]int{}
	for i, l := range c.Auth.Limits {
		at := fmt.Sprintf("auth.limits[%d]", i)
		found.checkKey(ValidKeyName(l.Key), at+".key", "%q is not the name of an owner; write the name of a key, or %s for this machine's own user", l.Key, core.LocalOwner)
		if first, twice := seen[l.Key]; twice {
			found.addFault(at+".key", "%q has a limit in auth.limits[%d] already", l.Key, first)
		}
		seen[l.Key] = i
		found.checkKey(l.USDPerDay != 0 || l.TokensPerDay != 0, at, "it limits nothing; set usd_per_day or tokens_per_day")
	}
}

func (t Tools) validate(found *faults) {
	var kinds []string
	for _, kind := range core.ToolKinds() {
		kinds = append(kinds, string(kind))
	}
	for _, kind := range t.Allow {
		oneOf(found, "tools.allow", kind, kinds)
	}
	for _, port := range t.FetchURL.Ports {
		n, err := strconv.Atoi(port)
		found.checkKey(err == nil && n >= 1 && n <= 65535, "tools.fetch_url.ports", "%q is not a port; use 1 to 65535, such as 443", port)
	}
	found.checkKey(len(t.FetchURL.Ports) > 0, "tools.fetch_url.ports", "it is empty; write the ports that may be connected to, such as 80,443")
}

// Server is how the HTTP API meets browsers.
type Server struct {
	CORSOrigins    []string `key:"cors_origins"`    // origins whose pages may read answers, such as https://chat.example
	WidgetOrigins  []string `key:"widget_origins"`  // origins whose pages may show the widget
	TrustedProxies []string `key:"trusted_proxies"` // addresses and networks whose X-Forwarded-For is believed
}

// Proxies returns the networks of the trusted proxies.
func (s Server) Proxies() []netip.Prefix {
	var list []netip.Prefix
	for _, text := range s.TrustedProxies {
		if p, ok := parseNetwork(text); ok {
			list = append(list, p)
		}
	}
	return list
}

// parseNetwork reads an address or a network.
func parseNetwork(text string) (netip.Prefix, bool) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), true
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err == nil
}

// validate checks that every origin is one, as browsers write it, and every proxy too.
func (s Server) validate(needsKey bool, found *faults) {
	for _, text := range s.TrustedProxies {
		_, ok := parseNetwork(text)
		found.checkKey(ok, "server.trusted_proxies", "%q is no address or network; write for example 10.0.0.7 or 10.0.0.0/8", text)
	}
	checkOrigins(found, "server.cors_origins", s.CORSOrigins)
	checkOrigins(found, "server.widget_origins", s.WidgetOrigins)
	found.checkKey(len(s.WidgetOrigins) == 0 || needsKey, "server.widget_origins",
		"visitors of these pages would need no token on this machine; set auth.required: true, and make tokens for visitors (auth.jwt)")
}

func checkOrigins(found *faults, key string, origins []string) {
	for _, origin := range origins {
		u, err := url.Parse(origin)
		ok := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil &&
			origin == strings.ToLower(u.Scheme+"://"+u.Host) && !strings.Contains(u.Host, "*")
		found.checkKey(ok, key, "%q is not an origin; write scheme, host and port as a browser does, in small letters and without a path, such as https://chat.example", origin)
	}
}

// JWT is whose tokens let the end users of a web chat in. It is off without keys.
type JWT struct {
	JWKSURL    string        `key:"jwks_url"`   // where the signer's public keys are fetched
	JWKSFile   string        `key:"jwks_file"`  // the same as a file
	AllowHTTP  bool          `key:"allow_http"` // keys may be fetched by http from other machines
	Issuer     string        `key:"issuer"`     // claim iss of every token
	Audience   string        `key:"audience"`   // one of the claim aud of every token
	Owner      string        `key:"owner"`      // whose users they are; empty = as OwnerClaim says
	OwnerClaim string        `key:"owner_claim"`
	UserClaim  string        `key:"user_claim"`
	Scopes     []string      `key:"scopes"`      // the most that a token may do
	ScopeClaim string        `key:"scope_claim"` // what a token may do; empty = all of Scopes
	Leeway     time.Duration `key:"leeway" range:"0s..5m"`
	MaxLife    time.Duration `key:"max_life" range:"0|1m.."` // of a token; 0 = no limit
	Refresh    time.Duration `key:"refresh" range:"1m..24h"` // how often keys are fetched
}

// Enabled reports whether tokens are taken.
func (j JWT) Enabled() bool { return j.JWKSURL != "" || j.JWKSFile != "" }

func (j JWT) validate(found *faults) {
	if !j.Enabled() {
		for _, given := range []struct{ key, value string }{
			{"issuer", j.Issuer}, {"audience", j.Audience}, {"owner", j.Owner}, {"owner_claim", j.OwnerClaim}, {"scope_claim", j.ScopeClaim},
		} {
			found.checkKey(given.value == "", "auth.jwt."+given.key, "there are no keys to check tokens with; set auth.jwt.jwks_url or auth.jwt.jwks_file, or remove it")
		}
		return
	}
	j.validateKeys(found)
	found.checkKey(j.Issuer != "", "auth.jwt.issuer", "it is missing; name what tokens have as iss, else those of anybody with such a key count")
	found.checkKey(j.Audience != "", "auth.jwt.audience", "it is missing; name what tokens have as aud, else those that are meant for other services count")
	switch {
	case j.Owner == "" && j.OwnerClaim == "":
		found.addFault("auth.jwt.owner", "it is missing; name the owner whose users the tokens are for, such as the name of your API key (or set auth.jwt.owner_claim)")
	case j.Owner != "" && j.OwnerClaim != "":
		found.addFault("auth.jwt.owner_claim", "auth.jwt.owner is set as well; choose one of them")
	case j.Owner != "":
		found.checkKey(ValidKeyName(j.Owner), "auth.jwt.owner", "%q must be 1 to 64 letters, digits, and . _ @ -", j.Owner)
	}
	found.checkKey(j.UserClaim != "", "auth.jwt.user_claim", "it is empty; name the claim that has the user, such as sub")
	rights, err := core.ParseRights(j.Scopes)
	found.checkKey(err == nil && core.UserRights.Has(rights), "auth.jwt.scopes", "%q are not what a token may do; use read, write, delete and export", strings.Join(j.Scopes, ","))
}

// validateKeys checks where the keys come from.
func (j JWT) validateKeys(found *faults) {
	if j.JWKSURL == "" {
		return
	}
	if j.JWKSFile != "" {
		found.addFault("auth.jwt.jwks_file", "auth.jwt.jwks_url is set as well; choose one of them")
	}
	u, err := url.Parse(j.JWKSURL)
	ok := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.Fragment == ""
	if !ok {
		found.addFault("auth.jwt.jwks_url", "this is not an address; write for example https://login.example.com/.well-known/jwks.json")
		return
	}
	found.checkKey(u.Scheme == "https" || j.AllowHTTP || isThisMachine(u.Hostname()), "auth.jwt.jwks_url",
		"keys that come by http can be changed on their way; use https, or set auth.jwt.allow_http if nobody is on it")
}

// isThisMachine reports whether the host is a name or an address of this machine.
func isThisMachine(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
