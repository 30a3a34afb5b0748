package browser_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"bobbin/tests/must"
	"bobbin/tests/process"
)

// proxy passes bytes on between the browser and a Bobbin, late, or not at all. Safe for concurrent use.
type proxy struct {
	addr string
	wait sync.WaitGroup

	mu     sync.Mutex
	target string            // guarded by mu
	delay  time.Duration     // of what the server sends; guarded by mu
	down   bool              // connections end at once; guarded by mu
	open   map[net.Conn]bool // guarded by mu
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l := must.Get(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	p := &proxy{addr: l.Addr().String(), target: target, open: map[net.Conn]bool{}}
	p.wait.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return // closed
			}
			p.wait.Go(func() { p.serve(t.Context(), in) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.setDown(true)
		p.wait.Wait()
	})
	return p
}

func (p *proxy) serve(ctx context.Context, in net.Conn) {
	defer func() { _ = in.Close() }()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	out, err := net.DialTimeout("tcp", target, time.Second) //nolint:noctx // a proxy has no request
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	p.mu.Lock()
	if p.down || target != p.target {
		p.mu.Unlock()
		return
	}
	p.open[in], p.open[out] = true, true
	p.mu.Unlock()
	p.wait.Go(func() {
		_, _ = io.Copy(out, in)
		_ = out.Close()
		_ = in.Close()
	})
	buffer := make([]byte, 16<<10)
	for {
		n, err := out.Read(buffer)
		p.mu.Lock()
		delay := p.delay
		p.mu.Unlock()
		process.Pause(ctx, delay) // a slow network
		if _, failure := in.Write(buffer[:n]); err != nil || failure != nil {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, in)
	delete(p.open, out)
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.open {
		_ = conn.Close()
	}
}

// lead leads to another server; what is connected with the one before breaks.
func (p *proxy) lead(target string) {
	p.mu.Lock()
	p.target = target
	p.mu.Unlock()
	p.cut()
}

func (p *proxy) setDelay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// setDown breaks all connections and those that come, until it is up again.
func (p *proxy) setDown(down bool) {
	p.mu.Lock()
	p.down = down
	p.mu.Unlock()
	if down {
		p.cut()
	}
}
