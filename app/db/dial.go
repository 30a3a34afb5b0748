package db

import (
	"context"
	"net"
	"syscall"
	"time"
)

// After how long a connection to PostgreSQL that is not answered any more is given up: a
// network that drops everything says nothing, and by itself TCP tries for a quarter of an
// hour. Together the probes take as long as sent data may stay without an answer.
const (
	silentIdle  = 10 * time.Second // without anything, before the first probe
	silentProbe = 5 * time.Second  // between probes
	silentTries = 3
	silentSent  = silentIdle + silentTries*silentProbe
)

// dialer connects to PostgreSQL, within the time.
func dialer(timeout time.Duration) *net.Dialer {
	return &net.Dialer{
		Timeout:         timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silentIdle, Interval: silentProbe, Count: silentTries},
		ControlContext: func(_ context.Context, _, _ string, c syscall.RawConn) error {
			return limitUnanswered(c, silentSent)
		},
	}
}
