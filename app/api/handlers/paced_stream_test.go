package handlers_test

import (
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
)

// Comments are for event streams, and nothing is written after the end.
func TestPacedStream(t *testing.T) {
	t.Parallel()
	for media, want := range map[string]string{"text/event-stream": ": keep-alive\n\ndata: x\n\n", "application/json": "data: x\n\n"} {
		w := httptest.NewRecorder()
		c, _ := gin.CreateTestContext(w)
		s := handlers.NewPacedStream(c)
		s.Header().Set("Content-Type", media)
		if err := s.KeepAlive(); err != nil {
			t.Errorf("%s: got %v", media, err)
		}
		if _, err := s.Write([]byte("data: x\n\n")); err != nil {
			t.Errorf("%s: got %v", media, err)
		}
		s.Close()
		if _, err := s.Write([]byte("late")); !errors.Is(err, handlers.ErrGone) {
			t.Errorf("%s: got %v after the end, want ErrGone", media, err)
		}
		if err := s.FlushError(); !errors.Is(err, handlers.ErrGone) {
			t.Errorf("%s: got %v after the end, want ErrGone", media, err)
		}
		s.WriteHeader(500)
		if got := w.Body.String(); got != want || w.Code != 200 {
			t.Errorf("%s: got %d %q, want %q", media, w.Code, got, want)
		}
	}
}
