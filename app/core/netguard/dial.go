// Package netguard connects to addresses that strangers name, and to no other ones
// than may be reached: Public addresses, unless its user says otherwise.
//
// What may be reached is decided when the connection is made, on the address that
// it goes to: a name is resolved once, and what is checked is what is connected to.
// So a name that resolves to something else the second time, or a redirect, comes
// to the same check.
package netguard

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// ErrNoHost says that a host has no address.
var ErrNoHost = errors.New("the host does not exist")

// errTooMuch ends an answer that has no end in what is read of it: packed data that
// holds nothing can be as long as its sender likes.
var errTooMuch = errors.New("the server sent too much")

// Dialer makes the connections of one exchange.
type Dialer struct {
	Until time.Time // when its time is over; connections end then; zero = never
	Bytes int64     // that may come over a connection; 0 = any number
	Ports []int     // that may be connected to; empty = all
	// Lookup resolves host names; nil = the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// Allow decides about each address that is connected to; nil = Public. It is not asked
	// about link-local addresses and those of clouds' metadata, which are always refused.
	Allow func(netip.Addr) error
}

// Dial connects to the host, for http.Transport.DialContext. Its errors are
// ErrNotPublic, or what Allow says; ErrNoHost; those of the network. The transport's
// context goes on when the time of the exchange is over, so that it is set anew.
func (d Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if !d.Until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, d.Until)
		defer cancel()
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := d.resolveHost(ctx, host)
	if err != nil {
		return nil, err
	}
	for i, addr := range addrs {
		var conn net.Conn
		left := dialTime
		if !d.Until.IsZero() {
			left = time.Until(d.Until)
		}
		// An address where nobody answers leaves time for the next.
		dialer := net.Dialer{ControlContext: d.checkAddress, Timeout: left / time.Duration(len(addrs)-i)}
		if conn, err = dialer.DialContext(ctx, network, net.JoinHostPort(addr.String(), port)); err == nil {
			if !d.Until.IsZero() {
				_ = conn.SetDeadline(d.Until.Add(afterTime)) // or a handshake without end would outlive the exchange
			}
			if d.Bytes == 0 {
				return conn, nil
			}
			return &boundedConn{Conn: conn, left: d.Bytes}, nil
		}
	}
	return nil, err
}

// dialTime is how long a connection may take whose exchange has no end.
const dialTime = 30 * time.Second

// afterTime is when a connection ends by itself after the time of its exchange: until
// then whoever reads from it is told that the time is over.
const afterTime = time.Second

// maxAddresses bounds how many addresses of one name are tried.
const maxAddresses = 4

func (d Dialer) resolveHost(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	lookup := d.Lookup
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	addrs, err := lookup(ctx, host)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil || len(addrs) == 0:
		return nil, ErrNoHost
	}
	return addrs[:min(len(addrs), maxAddresses)], nil
}

// checkAddress runs after the address is known and before anything is sent to it.
func (d Dialer) checkAddress(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || len(d.Ports) > 0 && !slices.Contains(d.Ports, int(to.Port())) {
		return ErrNotPublic
	}
	if isMetadataAddress(to.Addr()) {
		return ErrNotPublic
	}
	if d.Allow == nil {
		return Public(to.Addr())
	}
	return d.Allow(to.Addr())
}

// boundedConn is a connection over which not more than so many bytes come.
type boundedConn struct {
	net.Conn

	left int64
}

// Read reads until the bound is reached.
func (c *boundedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooMuch
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

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
