package handlers_test

import (
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/tests/compare"
)

// Comments are for event streams, and nothing is written after the end.
func TestPacedStream(t *testing.T) {
	t.Parallel()
	for media, want := range map[string]string{"text/event-stream": ": keep-alive\n\ndata: x\n\n", "application/json": "data: x\n\n"} {
		w := httptest.NewRecorder()
		c, _ := gin.CreateTestContext(w)
		s := handlers.NewPacedStream(c)
		s.Header().Set("Content-Type", media)
		compare.Error(t, media, nil, s.KeepAlive())
		compare.Error(t, media, nil, compare.ErrorOf(s.Write([]byte("data: x\n\n"))))
		s.Close()
		compare.Error(t, media+": after the end", handlers.ErrGone, compare.ErrorOf(s.Write([]byte("late"))))
		compare.Error(t, media+": after the end", handlers.ErrGone, s.FlushError())
		s.WriteHeader(500)
		if got := w.Body.String(); got != want || w.Code != 200 {
			t.Errorf("%s: got %d %q, want %q", media, w.Code, got, want)
		}
	}
}
