package handlers

import (
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// asking is a request of that caller.
func asking(t *testing.T, who core.Identity) *gin.Context {
	t.Helper()
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	c.Request = httptest.NewRequestWithContext(core.WithIdentity(t.Context(), who), "GET", "/", nil)
	return c
}

// Held requests are counted by owner, and by user where the caller is one.
func TestHold(t *testing.T) {
	t.Parallel()
	s := NewStreamLimiter(Limits{Streams: 9, StreamsPerOwner: 4, StreamsPerUser: 2})
	eve := asking(t, core.Identity{Owner: "shop", User: "eve"})
	var held []*slot
	hold := func(who *gin.Context, ok bool) {
		t.Helper()
		p, err := s.acquireSlot(who)
		if (err == nil) != ok || err != nil && !errors.Is(err, core.ErrRateLimited) {
			t.Fatalf("got %v, want held %v", err, ok)
		}
		if ok {
			held = append(held, p)
		}
	}
	hold(eve, true)
	hold(eve, true)
	hold(eve, false)
	hold(asking(t, core.Identity{Owner: "other", User: "eve"}), true) // another one
	hold(asking(t, core.Identity{Owner: "shop", User: "bob"}), true)
	hold(asking(t, core.Identity{Owner: "shop"}), true)
	hold(asking(t, core.Identity{Owner: "shop"}), false)
	for _, p := range held {
		s.releaseSlot(p)
	}
	if len(s.held) != 0 || len(s.callers) != 0 {
		t.Errorf("got %d held and %v counted when all are released, want none", len(s.held), s.callers)
	}
	hold(eve, true)
}
