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
