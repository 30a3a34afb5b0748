package handlers

import (
	"context"
	"iter"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
	"bobbin/tests/must"
)

// asking is a request of that caller.
func asking(t *testing.T, who core.Identity) *gin.Context {
	t.Helper()
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	c.Request = httptest.NewRequestWithContext(core.WithIdentity(t.Context(), who), "GET", "/", nil)
	return c
}

// The slot of a run's stream is free when its reader sees the end of the run; that of a stream without
// an end is held until the reader leaves.
func TestSlotIsFreeAtTheEndOfTheRun(t *testing.T) {
	t.Parallel()
	s := NewStreamLimiter(Limits{Streams: 1, StreamsPerOwner: 1})
	c := asking(t, core.Identity{Owner: "shop"})
	held := map[core.EventType]int64{}
	source := func(context.Context) iter.Seq2[core.Event, error] {
		return func(yield func(core.Event, error) bool) {
			_ = yield(core.Event{Type: core.EventRunStarted}, nil) && yield(core.Event{Type: core.EventRunFailed}, nil)
		}
	}
	count := func(buf []byte, e core.Event) ([]byte, error) {
		held[e.Type] = s.places.Used()
		return buf, nil
	}
	must.Do(t, s.WithSlot(c, func(stream RunStream) error { return stream(source, count) }))
	if held[core.EventRunStarted] != 1 || held[core.EventRunFailed] != 0 || s.places.Used() != 0 {
		t.Errorf("got %v slots at the events and %d afterwards, want 1, then none", held, s.places.Used())
	}
	must.Do(t, s.WithSlot(c, func(RunStream) error { return nil })) // without a stream, as the MCP server has it
	p := must.Get(s.acquireSlot(c.Request.Context()))(t)
	p.endless = true
	for _, err := range s.shownEvents(p, source)(t.Context()) {
		if err != nil || s.places.Used() != 1 {
			t.Error(err, "the slot of a session's stream is free at the end of a run")
		}
	}
}
