package db

import (
	"context"
	"net"
	"syscall"
	"time"
)

// When a connection to PostgreSQL without answers is closed. A network that drops all
// packets reports nothing, and TCP by itself retries for a quarter of an hour. All probes
// together take as long as sent data may stay unacknowledged.
const (
	keepaliveIdle     = 10 * time.Second // before the first probe
	keepaliveInterval = 5 * time.Second  // between probes
	keepaliveProbes   = 3
	maxUnanswered     = keepaliveIdle + keepaliveProbes*keepaliveInterval
)

// newDialer returns a dialer for PostgreSQL with a connect timeout.
func newDialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout:         timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepaliveIdle, Interval: keepaliveInterval, Count: keepaliveProbes},
		ControlContext: func(_ context.Context, _, _ string, c syscall.RawConn) error {
			return limitUnanswered(c, maxUnanswered)
		},
	}
}
