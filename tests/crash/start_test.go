package crash_test

import (
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/tests/provider"
)

// TestKilledWhileItStarts: the first start on an empty database makes the schema;
// however often it is killed at that, the next one goes on.
func TestKilledWhileItStarts(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, p place) {
		model, err := provider.New(provider.Options{Window: modelWindow})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(model.Close)
		b := newBobbin(t, p, model.URL)
		r := dice(seeded(t), 0)
		for range 12 {
			b.launch(t)
			pause(t.Context(), time.Duration(r.IntN(120))*time.Millisecond)
			b.kill()
		}
		b.start(t)
		c := b.client(t)
		session, err := c.CreateSession(t.Context(), core.Session{})
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.SendAndWait(t.Context(), core.SendMessage{SessionID: session.ID, Content: "Hello"})
		if err != nil || a.Message == nil || a.Message.Content != "answer to: Hello" {
			t.Errorf("got %+v, %v, want an answer", a, err)
		}
		b.stop(t)
	})
}
