package api

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// admitRequest makes requests wait until the server has started and refuses them once it
// stops. Probes always pass. Slack's requests do not wait: they are only stored, which needs
// nothing but the database, and Slack wants a quick answer.
func (s *Server) admitRequest(c *gin.Context) error {
	if isProbe(c.FullPath()) {
		return nil
	}
	if !strings.HasPrefix(c.FullPath(), slackRoute) {
		if err := s.awaitReady(c.Request.Context()); err != nil {
			return err
		}
	}
	if !s.inflight.beginRequest() {
		// A kept connection would lead to this process again.
		c.Header("Connection", "close")
		return core.Errorf(core.ErrUnavailable, "the server is stopping; try again in a moment")
	}
	defer s.inflight.endRequest()
	c.Next()
	return nil
}

// isProbe reports whether the route is for monitoring.
func isProbe(route string) bool {
	return route == "/healthz" || route == "/readyz" || route == metricsRoute
}

// awaitReady waits until the server has started, for at most Limits.Start.
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
	return core.Errorf(core.ErrUnavailable, "the server is starting and takes over the runs of an earlier process; try again in a moment")
}

// isReady is the readiness check that requests are admitted.
func (s *Server) isReady(context.Context) error {
	select {
	case <-s.ready:
		return nil
	default:
		return core.Errorf(core.ErrUnavailable, "runs of an earlier process have not been taken over yet")
	}
}

// inflight counts the requests in progress. Safe for concurrent use.
type inflight struct {
	mu     sync.Mutex
	count  int           // guarded by mu
	closed bool          // new requests are refused; guarded by mu
	idle   chan struct{} // closed when new requests are refused and none is in progress
}

func newInflight() *inflight { return &inflight{idle: make(chan struct{})} }

// beginRequest reports whether the request is admitted; endRequest must follow then.
func (g *inflight) beginRequest() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.count++
	return true
}

func (g *inflight) endRequest() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count--
	g.closeIfIdle()
}

// refuseMore refuses new requests and returns a channel that is closed when none is in
// progress.
func (g *inflight) refuseMore() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.closed = true
		g.closeIfIdle()
	}
	return g.idle
}

// closeIfIdle closes idle when it is due. The caller holds mu.
func (g *inflight) closeIfIdle() {
	if g.closed && g.count == 0 {
		close(g.idle)
	}
}
