package fault_test

import (
	"errors"
	"net"
	"sync"
	"testing"

	"bobbin/tests/must"
)

// linkState is what a link does with what goes through it.
type linkState int

const (
	linkOpen    linkState = iota
	linkCut               // connections are broken, new ones too
	linkStalled           // connections stay, and nothing comes through
)

// link is a TCP proxy that can be broken. Safe for concurrent use.
type link struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	state linkState             // guarded by mu
	moved chan struct{}         // closed when the state changes; guarded by mu
	pairs map[net.Conn]net.Conn // accepted → dialed, nil = not yet; guarded by mu
	down  bool                  // closed for good; guarded by mu

	wait sync.WaitGroup
}

// newLink listens on loopback and passes on to the target.
func newLink(t *testing.T, target string) *link {
	t.Helper()
	l := must.Get(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	k := &link{listener: l, target: target, moved: make(chan struct{}), pairs: map[net.Conn]net.Conn{}}
	k.wait.Go(k.accept)
	t.Cleanup(k.close)
	return k
}

// addr is where to connect to get to the target.
func (k *link) addr() string { return k.listener.Addr().String() }

// set changes what the link does from now on.
func (k *link) set(s linkState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state = s
	close(k.moved)
	k.moved = make(chan struct{})
	if s == linkCut {
		k.breakAll()
	}
}

// breakAll resets all connections; the caller holds mu.
func (k *link) breakAll() {
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
func (k *link) close() {
	_ = k.listener.Close()
	k.mu.Lock()
	k.down = true
	k.mu.Unlock()
	k.set(linkCut)
	k.wait.Wait()
}

func (k *link) accept() {
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
func (k *link) serve(in net.Conn) {
	defer func() { _ = in.Close() }()
	if !k.enter(in) {
		return
	}
	defer k.leave(in)
	if !k.pass() {
		return
	}
	out, err := net.Dial("tcp", k.target) //nolint:noctx // close breaks it
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	if !k.join(in, out) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { k.carry(in, out) })
	k.carry(out, in)
	back.Wait()
}

func (k *link) enter(in net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pairs[in] = nil
	return k.state != linkCut
}

func (k *link) join(in, out net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pairs[in] = out
	return k.state != linkCut
}

func (k *link) leave(in net.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.pairs, in)
}

// pass returns when the link is not stalled, and reports whether it carries.
func (k *link) pass() bool {
	for {
		k.mu.Lock()
		state, moved := k.state, k.moved
		k.mu.Unlock()
		if state != linkStalled {
			return state == linkOpen
		}
		<-moved
	}
}

// carry copies until either side ends, which ends both.
func (k *link) carry(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !k.pass() {
				return
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
