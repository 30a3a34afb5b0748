package process

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"bobbin/tests/must"
)

// LinkState is what a link does with what goes through it.
type LinkState int

// States of a link.
const (
	LinkOpen    LinkState = iota
	LinkCut               // connections are broken, new ones too
	LinkStalled           // connections stay, and nothing comes through
)

// Link is a TCP proxy that can be broken. Safe for concurrent use.
type Link struct {
	// Carry, if set before the first connection, passes on what a connection has, in place of the link,
	// until either side ends.
	Carry func(in, out net.Conn)

	listener net.Listener
	wait     sync.WaitGroup

	mu     sync.Mutex
	target string                // guarded by mu
	delay  time.Duration         // of what comes from the target; guarded by mu
	state  LinkState             // guarded by mu
	moved  chan struct{}         // closed when the state changes; guarded by mu
	pairs  map[net.Conn]net.Conn // accepted → dialed, nil = not yet; guarded by mu
}

// NewLink returns a link that listens on loopback and leads to the target. It ends with the test.
func NewLink(t testing.TB, target string) *Link {
	t.Helper()
	l := must.Get(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	k := &Link{listener: l, target: target, moved: make(chan struct{}), pairs: map[net.Conn]net.Conn{}}
	k.wait.Go(k.accept)
	t.Cleanup(k.close)
	return k
}

// Addr is where to connect to get to the target.
func (k *Link) Addr() string { return k.listener.Addr().String() }

// Set changes what the link does from now on.
func (k *Link) Set(s LinkState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state = s
	close(k.moved)
	k.moved = make(chan struct{})
	if s == LinkCut {
		k.breakAll()
	}
}

// SetDelay delays what comes from the target, each piece of it.
func (k *Link) SetDelay(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.delay = d
}

// Lead breaks all connections, and leads to the target from now on.
func (k *Link) Lead(target string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.target = target
	k.breakAll()
}

// Break breaks all connections that there are.
func (k *Link) Break() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.breakAll()
}

// breakAll resets all connections; the caller holds mu.
func (k *Link) breakAll() {
	for in, out := range k.pairs {
		for _, c := range []net.Conn{in, out} {
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // no farewell
				_ = tcp.Close()
			}
		}
	}
}

// close ends the link and waits for its goroutines.
func (k *Link) close() {
	_ = k.listener.Close()
	k.Set(LinkCut)
	k.wait.Wait()
}

func (k *Link) accept() {
	for {
		in, err := k.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		k.wait.Go(func() { k.serve(in) })
	}
}

// serve carries one connection.
func (k *Link) serve(in net.Conn) {
	defer func() { _ = in.Close() }()
	target, ok := k.join(in, nil, "")
	defer k.leave(in)
	if !ok || !k.pass() {
		return
	}
	out, err := net.Dial("tcp", target) //nolint:noctx // close breaks it
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	if _, ok := k.join(in, out, target); !ok {
		return
	}
	if k.Carry != nil {
		k.Carry(in, out)
		return
	}
	var back sync.WaitGroup
	back.Go(func() { k.carry(in, out, true) })
	k.carry(out, in, false)
	back.Wait()
}

// join notes a pair, and returns where the link leads; false = the connections must end.
func (k *Link) join(in, out net.Conn, dialed string) (target string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pairs[in] = out
	return k.target, k.state != LinkCut && (out == nil || dialed == k.target)
}

func (k *Link) leave(in net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.pairs, in)
}

// pass returns when the link is not stalled, and reports whether it carries.
func (k *Link) pass() bool {
	for {
		k.mu.Lock()
		state, moved := k.state, k.moved
		k.mu.Unlock()
		if state != LinkStalled {
			return state == LinkOpen
		}
		<-moved
	}
}

// carry copies until either side ends, which ends both.
func (k *Link) carry(to, from net.Conn, late bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !k.pass() {
				return
			}
			if late {
				k.mu.Lock()
				delay := k.delay
				k.mu.Unlock()
				Pause(context.Background(), delay) // a slow network
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
