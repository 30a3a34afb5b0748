package fetch

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// dial connects to the host. It resolves the name once and connects to addresses:
// what is checked is what is connected to. The transport's context goes on when the
// time of the fetch is over, so that it is set anew.
func (x *exchange) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithDeadline(ctx, x.until)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := x.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	for i, addr := range addrs {
		var conn net.Conn
		if conn, err = x.connect(ctx, network, net.JoinHostPort(addr.String(), port), len(addrs)-i); err == nil {
			_ = conn.SetDeadline(x.until.Add(afterTime)) // or a handshake without end would outlive the fetch
			return &boundedConn{Conn: conn, left: wireFactor*x.Bytes + wireBytes}, nil
		}
	}
	return nil, err
}

// connect connects to one address in its share of the time that is left, so that an
// address where nobody answers leaves time for the next.
func (x *exchange) connect(ctx context.Context, network, address string, share int) (net.Conn, error) {
	d := net.Dialer{ControlContext: x.control, Timeout: time.Until(x.until) / time.Duration(share)}
	return d.DialContext(ctx, network, address)
}

// afterTime is when a connection ends by itself after the time of its fetch: until
// then whoever reads from it is told that the time is over.
const afterTime = time.Second

// maxAddresses bounds how many addresses of one name are tried.
const maxAddresses = 4

func (x *exchange) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	addrs, err := x.Lookup(ctx, host)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil || len(addrs) == 0:
		return nil, unreachable(host)
	}
	return addrs[:min(len(addrs), maxAddresses)], nil
}

// control runs after the address is known and before anything is sent to it.
func (x *exchange) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !slices.Contains(x.Ports, int(to.Port())) {
		return errNotPublic
	}
	return x.Allow(to.Addr())
}

// What may come over one connection: a page that is sent in small pieces needs
// several bytes for each of its own.
const (
	wireFactor = 8
	wireBytes  = 1 << 20
)

// errTooMuch ends an answer that has no end in what is read of it: packed data that
// holds nothing can be as long as its sender likes.
var errTooMuch = errors.New("the server sent too much")

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
