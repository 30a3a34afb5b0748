package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// admitRequest makes requests wait until the server has started and refuses them once it
// stops, and those that start a run while the server is overloaded. Probes always pass. Slack's requests do not wait: they are only stored, which needs
// nothing but the database, and Slack wants a quick answer.
func (s *Server) admitRequest(c *gin.Context) error {
	if isProbe(c.FullPath()) {
		return nil
	}
	if !strings.HasPrefix(c.FullPath(), slackRoute) && !s.isAdmitting() {
		limit := time.NewTimer(s.Limits.Start)
		defer limit.Stop()
		select {
		case <-s.Ready:
		case <-limit.C:
		case <-s.drain:
		case <-c.Request.Context().Done():
		}
		if !s.isAdmitting() {
			return core.Errorf(core.ErrUnavailable, "the server is starting and takes over the runs of an earlier process; try again in a moment")
		}
	}
	if isClosed(s.drain) || !s.requests.TryRLock() {
		// A kept connection would lead to this process again.
		c.Header("Connection", "close")
		return core.Errorf(core.ErrUnavailable, "the server is stopping; try again in a moment")
	}
	defer s.requests.RUnlock()
	if s.Overloaded != nil && startsRun(c) && s.Overloaded() {
		return &core.Error{Kind: core.ErrUnavailable, Code: "overloaded", RetryAfter: time.Second, Message: "more messages arrive than this server can answer; try again in a second"}
	}
	c.Next()
	return nil
}

// startsRun reports whether the request asks an agent, by its route alone: its body is not read.
func startsRun(c *gin.Context) bool {
	route, post := c.FullPath(), c.Request.Method == http.MethodPost
	return (post || c.Request.Method == http.MethodPatch) && asksAgent(route) || post && (route == openAIPrefix+"chat/completions" || route == openAIPrefix+"responses")
}

// isProbe reports whether the route is for monitoring.
func isProbe(route string) bool {
	return route == "/healthz" || route == "/readyz" || route == metricsRoute
}

// isAdmitting reports whether the server has started.
func (s *Server) isAdmitting() bool { return s.Ready == nil || isClosed(s.Ready) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
