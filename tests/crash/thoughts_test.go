package crash_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/provider"
)

// TestKilledBehindAppendedTools: the agent's system prompt and tools have changed, so that prompts append both,
// and the process is killed before, within and behind an answer to such a prompt. After each restart the prompt
// has them in the same place: no thought is refused or left out.
func TestKilledBehindAppendedTools(t *testing.T) {
	t.Parallel()
	eachPlace(t, killBehindTools)
}

func killBehindTools(t *testing.T, p place) {
	var held atomic.Pointer[heldPoint]
	house, err := provider.New(provider.Options{
		Strict: &provider.Strict{Account: "account", Secret: "secret", AlwaysThinks: true},
		At: func(at provider.Point, _ provider.Asked) {
			if h := held.Load(); h != nil && h.point == at {
				h.gate.pass()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(house.Close)
	b := newBobbin(t, p, house.URL)
	b.configure(t, fmt.Sprintf("  - name: house\n    provider: anthropic\n    model: claude-opus-5-5\n    base_url: %s\n    api_key_env: PROVIDER_KEY\n"+
		"    thinking_budget: 1024\n    context_window: 200000\n    max_output_tokens: 8192\n", house.URL))
	restart := func(prompt, tools string) {
		if b.now != nil {
			b.stop(t)
		}
		writeAgent(t, p, "thinker", fmt.Sprintf("name: thinker\nsystem_prompt: %s\nmodel: house\ntools: [%s]\n", prompt, tools))
		b.start(t)
	}
	restart("You think.", "calculator")
	c := b.client(t)
	session, err := c.CreateSession(t.Context(), core.Session{Agent: "thinker"})
	if err != nil {
		t.Fatal(err)
	}
	w := watchRaw(t, b, session.ID)
	sent := 0
	send := func() {
		sent++
		if _, err := c.SendAsync(t.Context(), core.SendMessage{SessionID: session.ID, Content: "use the tool current_time", ClientMessageID: fmt.Sprint(sent)}); err != nil {
			t.Fatal(err)
		}
	}
	await := func() {
		ended := 0
		w.await(t, "the end of all runs", func(f frame) bool {
			if f.event == core.EventRunSucceeded {
				ended++
			}
			return ended == sent
		})
	}
	send()
	await()
	for i, point := range []provider.Point{provider.PointPrompt, provider.PointTool, provider.PointStream, provider.PointEnd} {
		restart(fmt.Sprintf("You think %d times.", i), []string{"current_time, calculator", "calculator"}[i%2])
		h := &heldPoint{point, newGate(t)}
		held.Store(h)
		send()
		<-h.gate.reached
		b.kill()
		held.Store(nil)
		h.gate.open()
		b.start(t)
		await()
	}
	send()
	await()
	report, err := c.Context(t.Context(), session.ID)
	if err != nil || report.Thoughts == nil || report.Thoughts.Kept != 2*sent || len(report.Thoughts.Dropped) > 0 {
		t.Errorf("got the thoughts %+v, %v, want all %d kept", report.Thoughts, err, 2*sent)
	}
	if got := house.Thoughts(); got.Refused > 0 || got.Dropped > 0 {
		t.Errorf("got %+v, want no thought refused or dropped", got)
	}
	b.stop(t)
}

// heldPoint holds the first request that comes to a point.
type heldPoint struct {
	point provider.Point
	gate  *gate
}
