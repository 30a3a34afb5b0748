package db

import (
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"
)

// A connection to PostgreSQL does not wait for a silent network as long as TCP would.
func TestDialerLimitsSilence(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			addr := "127.0.0.1:0"
			if network == "unix" {
				addr = t.TempDir() + "/s"
			}
			l := must.Get(new(net.ListenConfig).Listen(t.Context(), network, addr))(t)
			defer func() { _ = l.Close() }() // it did its work
			conn := must.Get(newDialer(time.Minute).DialContext(t.Context(), network, l.Addr().String()))(t)
			defer func() { _ = conn.Close() }() // as above
			if network == "unix" {
				return
			}
			raw, err := conn.(*net.TCPConn).SyscallConn()
			must.Do(t, err)
			want := map[int]int{tcpUserTimeout: 25_000, syscall.TCP_KEEPIDLE: 10, syscall.TCP_KEEPINTVL: 5, syscall.TCP_KEEPCNT: 3}
			err = raw.Control(func(fd uintptr) {
				for option, n := range want {
					compare.Equal(t, fmt.Sprintf("option %#x", option), n, must.Get(syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, option))(t))
				}
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
