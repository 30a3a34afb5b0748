package config

import (
	"net/netip"
	"net/url"
	"strings"
)

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
