package tools_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"bobbin/app/agents/tools"
	"bobbin/tests/must"
)

// blackHole is a port of this machine at which connections are never answered: it
// keeps none waiting, and one waits already.
func blackHole(t *testing.T) int {
	t.Helper()
	fd := must.Get(syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0))(t)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	must.Do(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must.Do(t, syscall.Listen(fd, 0))
	at := must.Get(syscall.Getsockname(fd))(t)
	port := at.(*syscall.SockaddrInet4).Port
	for range 4 {
		d := net.Dialer{Timeout: 100 * time.Millisecond}
		conn, err := d.DialContext(t.Context(), "tcp", (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}).String())
		if err != nil {
			return port
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	t.Skip("this system keeps more connections waiting")
	return 0
}

// An address at which nobody answers takes its share of the time, and leaves the rest
// to the next one.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	port := blackHole(t)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 2), Port: port}).String())
	if err != nil {
		t.Skipf("no second address: %v", err)
	}
	s := &site{Server: httptest.NewUnstartedServer(http.HandlerFunc(text("here"))), port: port}
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	o := s.options()
	o.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")}, nil
	}
	page, err := tools.NewFetcher(o).Get(t.Context(), tools.Request{URL: s.at("a.example", "/"), Time: 3 * time.Second})
	if err != nil || page.Text != "here" {
		t.Errorf("got %q, error %v, want the page of the second address", page.Text, err)
	}
}
