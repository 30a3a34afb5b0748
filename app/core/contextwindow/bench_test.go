package contextwindow_test

import (
	"fmt"
	"testing"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
)

// large is a session of n messages with tool rounds, and a run of n/100 rounds.
func large(n int) *talk {
	c := &talk{log: make([]core.Message, 0, n+n/50+2)}
	for len(c.log) < n {
		c.user(30).round(200, 40).answer(120)
	}
	return c
}

// largeInputs are the plans that have the most to do over n messages.
func largeInputs(t testing.TB, n int) map[string]cw.Input {
	t.Helper()
	c := large(n)
	start := int64(len(c.log) + 1)
	c.user(30)
	for range n / 100 {
		c.round(100)
	}
	inputs := map[string]cw.Input{}
	for _, name := range []string{"off", "window", "budget"} {
		inputs[name] = c.during(preset(t, name), 128_000, start)
	}
	failed := c.during(preset(t, "window"), 8_192, start)
	failed.NoSummary = true
	inputs["window, summary failed"] = failed
	long := c.during(preset(t, "off"), 8_192, start)
	for i := range long.History { // all are shortened before they are left out
		long.History[i].Tokens += 1_000
	}
	inputs["off, large messages"] = long
	pinned := c.during(preset(t, "off"), 8_192, start)
	for i := range pinned.History {
		pinned.History[i].Pinned = i%500 == 0
	}
	inputs["off, some pinned"] = pinned
	all := c.during(preset(t, "off"), 8_192, start)
	all.Run = append(all.History[:len(all.History):len(all.History)], all.Run...) // a run of n messages
	all.History = nil
	inputs["off, all in the run"] = all
	return inputs
}

func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{200, 2_000, 20_000} {
		for name, in := range largeInputs(b, n) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				for b.Loop() {
					cw.Plan(in)
				}
			})
		}
	}
}

// BenchmarkAssemble makes the prompt of a full 128K window.
func BenchmarkAssemble(b *testing.B) {
	c := large(1_000)
	d, _ := cw.Plan(c.between(preset(b, "off"), 128_000))
	parts := c.parts()
	for b.Loop() {
		cw.Assemble(parts, d, quarter{})
	}
}
