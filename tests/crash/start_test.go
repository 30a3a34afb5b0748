package crash_test

import (
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/provider"
	"bobbin/tests/seed"
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
		for _, after := range startDelays() {
			if err := b.Launch(); err != nil {
				t.Fatal(err)
			}
			pause(t.Context(), after)
			b.Kill()
		}
		b.start(t)
		c := b.client(t)
		session, err := client.Call(t.Context(), c, ops.CreateSession, ops.NewSession{})
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

// startDelays are how long after the start the process is killed: in CI a fixed list.
func startDelays() []time.Duration {
	delays := []time.Duration{0, 5 * time.Millisecond, 15 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond, 110 * time.Millisecond}
	if seed.IsChosen() {
		for range 12 {
			delays = append(delays, randomDelay(120*time.Millisecond))
		}
	}
	return delays
}
