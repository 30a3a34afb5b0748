package netguard

import (
	"errors"
	"net/netip"
	"slices"
)

// ErrNotPublic says that an address is not one of the public internet.
var ErrNotPublic = errors.New("the address is not public")

// Public returns an error unless the address is one of the public internet: for
// this machine, private networks, link-local ones (where clouds have their
// metadata), carriers' own, multicast, documentation, whatever is reserved, and
// for IPv6 forms of all these (IPv4-mapped, NAT64, 6to4, Teredo).
func Public(addr netip.Addr) error {
	if addr.Zone() != "" {
		return ErrNotPublic
	}
	addr = addr.Unmap()
	if wellKnownNAT64().Contains(addr) {
		addr = embeddedV4(addr)
	}
	refused := containsAddress(refusedV4(), addr)
	if addr.Is6() {
		// What is not given out, and what is special in the rest.
		special := parsePrefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
		refused = !netip.MustParsePrefix("2000::/3").Contains(addr) || containsAddress(special, addr)
	}
	if !addr.IsValid() || refused {
		return ErrNotPublic
	}
	return nil
}

// isMetadataAddress reports whether an address is one at which clouds serve their machines
// credentials, or link-local, where most of them are. Nobody connects to these for
// somebody else.
func isMetadataAddress(addr netip.Addr) bool {
	addr = embeddedV4(addr.WithZone("").Unmap())
	return containsAddress(parsePrefixes("169.254.0.0/16", "fe80::/10",
		"168.63.129.16/32",                      // Azure
		"fd00:ec2::254/128", "fd00:ec2::23/128", // AWS
		"fd20:ce::254/128",   // Google
		"100.100.100.200/32", // Alibaba
		"192.0.0.192/32",     // Oracle
		"fd00:42::42/128",    // Scaleway
	), addr)
}

func containsAddress(prefixes []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// wellKnownNAT64 is the prefix of RFC 6052. With DNS64 all of the web has such addresses.
func wellKnownNAT64() netip.Prefix { return netip.MustParsePrefix("64:ff9b::/96") }

// embeddedV4 returns the IPv4 address that a gateway or a tunnel would connect to for an IPv6 address:
// NAT64, of the well-known prefix and, with a prefix of 96 bits, of the local one (RFC 8215), 6to4,
// IPv4-compatible and IPv4-translated ones. Any other address is returned as it is.
func embeddedV4(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return addr
	}
	b := addr.As16()
	switch {
	case netip.MustParsePrefix("2002::/16").Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:]))
	case containsAddress(append(parsePrefixes("64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96"), wellKnownNAT64()), addr):
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return addr
}

// refusedV4 is the IANA registry of special-purpose IPv4 addresses, but for those
// that are globally reachable, and the one public address at which a cloud serves
// its machines.
func refusedV4() []netip.Prefix {
	return parsePrefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"168.63.129.16/32", // Azure's wire server
	)
}

func parsePrefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, 0, len(texts))
	for _, t := range texts {
		list = append(list, netip.MustParsePrefix(t))
	}
	return list
}
