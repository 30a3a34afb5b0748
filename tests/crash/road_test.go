package crash_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/client"
	"bobbin/tests/must"
	"bobbin/tests/process"
)

// road leads clients to the replicas as a load balancer does that knows nothing: to any
// that is up. Connections on it break at random. Safe for concurrent use.
type road struct {
	replicas []*replica
	calm     atomic.Bool // nothing breaks any more
	broken   atomic.Int64
}

// traveler is how the connections of one client live.
type traveler struct {
	road  *road
	share float64       // of connections that break by themselves
	life  time.Duration // of these, at most
}

// client returns a client of the API on the road, whose every request has a connection of its own.
func (v traveler) client(t *testing.T) *client.Client {
	t.Helper()
	return must.Get(client.New(client.Options{URL: "http://localhost", HTTP: &http.Client{Transport: &http.Transport{DialContext: v.dial, DisableKeepAlives: true}}}))(t)
}

// dial connects to a replica that is up, as soon as there is one.
func (v traveler) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	for {
		for _, n := range shared.Perm(len(v.road.replicas)) {
			r := v.road.replicas[n]
			addr := r.Door.Addr()
			if addr == "" {
				continue
			}
			if conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr); err == nil {
				return v.mortal(conn), nil
			}
		}
		if !process.Pause(ctx, 20*time.Millisecond) {
			return nil, context.Cause(ctx)
		}
	}
}

// mortal lets some connections break.
func (v traveler) mortal(conn net.Conn) net.Conn {
	if v.road.calm.Load() || shared.Float64() >= v.share {
		return conn
	}
	m := &mortalConn{Conn: conn}
	m.end = time.AfterFunc(randomDelay(v.life), func() {
		if v.road.calm.Load() {
			return
		}
		v.road.broken.Add(1)
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	})
	return m
}

// mortalConn is a connection that breaks after a while.
type mortalConn struct {
	net.Conn

	end  *time.Timer
	once sync.Once
}

func (m *mortalConn) Close() error {
	m.once.Do(func() { m.end.Stop() })
	return m.Conn.Close()
}
