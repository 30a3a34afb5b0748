package handlers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
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
	var held []*slot
	for i, ask := range []struct {
		owner, user string
		refused     bool
	}{{"shop", "eve", false}, {"shop", "eve", false}, {"shop", "eve", true}, {"other", "eve", false}, {"shop", "bob", false}, {"shop", "", false}, {"shop", "", true}} {
		p, err := s.acquireSlot(asking(t, core.Identity{Owner: ask.owner, User: ask.user}).Request.Context())
		compare.Equal(t, fmt.Sprintf("request %d: got %v, refused", i, err), ask.refused, errors.Is(err, core.ErrRateLimited))
		held = append(held, p)
	}
	for _, p := range held {
		s.releaseSlot(p)
	}
	compare.Equal(t, "held and counted when all are released", []int{0, 0}, []int{len(s.held), len(s.callers)})
}

// The slot of a run's stream is free when its reader sees the end of the run; that of a stream without
// an end is held until the reader leaves.
func TestSlotIsFreeAtTheEndOfTheRun(t *testing.T) {
	t.Parallel()
	s := NewStreamLimiter(Limits{Streams: 1, StreamsPerOwner: 1})
	c := asking(t, core.Identity{Owner: "shop"})
	held := map[core.EventType]int{}
	source := func(context.Context) iter.Seq2[core.Event, error] {
		return func(yield func(core.Event, error) bool) {
			_ = yield(core.Event{Type: core.EventRunStarted}, nil) && yield(core.Event{Type: core.EventRunFailed}, nil)
		}
	}
	count := func(buf []byte, e core.Event) ([]byte, error) {
		held[e.Type] = len(s.held)
		return buf, nil
	}
	must.Do(t, s.WithSlot(c, func(stream RunStream) error { return stream(source, count) }))
	if held[core.EventRunStarted] != 1 || held[core.EventRunFailed] != 0 || len(s.held) != 0 || len(s.callers) != 0 {
		t.Errorf("got %v slots at the events and %d afterwards, want 1, then none", held, len(s.held))
	}
	p := must.Get(s.acquireSlot(c.Request.Context()))(t)
	p.endless = true
	for _, err := range s.shownEvents(p, source)(t.Context()) {
		if err != nil || len(s.held) != 1 {
			t.Error(err, "the slot of a session's stream is free at the end of a run")
		}
	}
}
