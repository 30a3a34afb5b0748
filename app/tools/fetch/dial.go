package fetch

import (
	"context"
	"net"

	"bobbin/app/core/netguard"
)

// What may come over one connection: a page that is sent in small pieces needs
// several bytes for each of its own.
const (
	wireFactor = 8
	wireBytes  = 1 << 20
)

// dial connects to a host of the fetch.
func (x *exchange) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := netguard.Dialer{Until: x.until, Bytes: wireFactor*x.Bytes + wireBytes, Ports: x.Ports, Lookup: x.Lookup, Allow: x.Allow}
	return d.Dial(ctx, network, address)
}
