package tokens_test

import (
	"fmt"
	"math"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/tokens"
)

// C1: a model that counts Chinese less than English: each conversation has its own
// factor, once the model is measured; a new one begins with the model's.
func TestCalibratorBySession(t *testing.T) {
	t.Parallel()
	c := tokens.NewCalibrator(prior(1))
	ratios := map[core.SessionID]float64{"english": 1, "chinese": 0.65}
	for call := range 20 {
		for id, ratio := range ratios {
			if got := c.Estimate("m", id); call >= 3 && (math.Abs(got.Factor-ratio) > 0.001 || !got.Measured || call > 3 && got.Deviation > 0.001) {
				t.Errorf("%s, call %d: got %+v, want factor %g", id, call, got, ratio)
			}
			c.Observe("m", id, 1000, int(1000*ratio))
		}
	}
	for _, id := range []core.SessionID{"", "new"} {
		if got := c.Estimate("m", id); got.Factor < 0.7 || got.Factor > 0.95 || got.Deviation < 0.15 {
			t.Errorf("session %q: got %+v, want the model's mean, and how far that is off", id, got)
		}
	}
	if got := c.Estimate("other", "english"); got.Measured {
		t.Errorf("another model in the same conversation: got %+v, want it not measured", got)
	}
}

// Until the model was measured in five calls, a conversation's own
// count does not make its estimate less careful.
func TestCalibratorSessionBeforeTheModelIsMeasured(t *testing.T) {
	t.Parallel()
	c := tokens.NewCalibrator(prior(1))
	for range 4 {
		c.Observe("m", "s", 1000, 700)
	}
	if got := c.Estimate("m", "s"); got.Measured || got.Factor != 1.1 {
		t.Errorf("after 4 calls: got %+v, want 1.1, not measured", got)
	}
}

// A refusal in a conversation is about its prompts: its own factor is raised, and the
// model's at least to the same.
func TestCalibratorTightensTheSession(t *testing.T) {
	t.Parallel()
	c := tokens.NewCalibrator(prior(1))
	for range 6 {
		c.Observe("m", "s", 1000, 700)
		c.Observe("m", "t", 1000, 1400)
	}
	before := c.Estimate("m", "t").Factor
	c.Tighten("m", "s", 1.2)
	for id, want := range map[core.SessionID]float64{"s": 1.2, "t": before, "new": 1.2} {
		if got := c.Estimate("m", id).Factor; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: got %g, want %g", id, got, want)
		}
	}
}

// What is kept of conversations is bounded; those in use stay.
func TestCalibratorForgetsSessions(t *testing.T) {
	t.Parallel()
	c := tokens.NewCalibrator(prior(1))
	for range 10 {
		c.Observe("m", "", 1000, 1000)
	}
	c.Observe("m", "used", 1000, 2000)
	c.Observe("m", "idle", 1000, 2000)
	const many = 20_000
	for i := range many {
		c.Observe("m", core.SessionID(fmt.Sprint(i)), 1000, 1000)
		if got := c.Estimate("m", "used").Factor; got != 2 {
			t.Fatalf("after %d others: got %g, want the factor of a conversation in use", i, got)
		}
	}
	if got := c.Estimate("m", "idle").Factor; got == 2 {
		t.Errorf("got the factor of a conversation that %d others came after", many)
	}
	if got := tokens.Sessions(c); got > 2*4096 {
		t.Errorf("%d conversations are kept", got)
	}
}
