package api

import (
	"context"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// admit lets requests in between the start and the stop: before, they wait, and after
// the beginning of the stop they are refused. Probes pass always.
func (s *Server) admit(c *gin.Context) error {
	if isProbe(c.FullPath()) {
		return nil
	}
	if err := s.awaitReady(c.Request.Context()); err != nil {
		return err
	}
	if !s.guests.enter() {
		// Who keeps the connection would come to this process again.
		c.Header("Connection", "close")
		return core.Errorf(core.ErrUnavailable, "the server is stopping; ask again in a moment, another one or its next start answers")
	}
	defer s.guests.leave()
	c.Next()
	return nil
}

// isProbe reports whether the route is asked by machines that look after the server.
func isProbe(route string) bool {
	return route == "/healthz" || route == "/readyz" || route == metricsRoute
}

// awaitReady returns when the server may let requests in, or that it does not yet.
func (s *Server) awaitReady(ctx context.Context) error {
	select {
	case <-s.ready:
		return nil
	default:
	}
	limit := time.NewTimer(s.limits.Start)
	defer limit.Stop()
	select {
	case <-s.ready:
		return nil
	case <-limit.C:
	case <-s.drain:
	case <-ctx.Done():
	}
	return core.Errorf(core.ErrUnavailable, "the server is starting: it takes over what an earlier one left; ask again in a moment")
}

// isReady checks that requests are let in.
func (s *Server) isReady(context.Context) error {
	select {
	case <-s.ready:
		return nil
	default:
		return core.Errorf(core.ErrUnavailable, "runs of an earlier process are not taken over yet")
	}
}

// guests counts the requests in hand. Safe for concurrent use.
type guests struct {
	mu     sync.Mutex
	inside int           // guarded by mu
	closed bool          // nobody is let in any more; guarded by mu
	gone   chan struct{} // closed when nobody is let in and all have left
}

func newGuests() *guests { return &guests{gone: make(chan struct{})} }

// enter reports whether the request is let in; it must leave then.
func (g *guests) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.inside++
	return true
}

func (g *guests) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.tell()
}

// shut lets nobody in any more, and returns what is closed when all have left.
func (g *guests) shut() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.closed = true
		g.tell()
	}
	return g.gone
}

// tell closes gone when that is due. The caller holds mu.
func (g *guests) tell() {
	if g.closed && g.inside == 0 {
		close(g.gone)
	}
}
