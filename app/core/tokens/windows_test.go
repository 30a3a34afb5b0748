package tokens_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/tokens"
)

// A window that the provider told holds for the model, over a restart,
// for a day; a larger prompt that went through proves that it is none.
func TestToldWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := tokens.NewCalibrator(prior(1))
		c.Told("m", "", 8192)
		c.Told("tiny", "", 100) // no window of a model in use
		if m, tiny, other := c.Window("m"), c.Window("tiny"), c.Window("other"); m != 8192 || tiny != 0 || other != 0 {
			t.Fatalf("got windows %d, %d and %d, want 8192, 0 and 0", m, tiny, other)
		}
		c.Fitted("m", 8192)
		c.Fitted("other", 9000)
		rows := c.Changed()
		if len(rows) != 1 || rows[0].Window != 8192 || rows[0].WindowAt == nil || c.Window("m") != 8192 {
			t.Fatalf("got %+v, want the window of m alone", rows)
		}
		restarted := tokens.NewCalibrator(prior(1))
		restarted.Restore(rows)
		if got := restarted.Estimate("m", ""); restarted.Window("m") != 8192 || got.Factor != 1.1 {
			t.Errorf("restarted: got window %d, %+v, want 8192 and nothing measured", restarted.Window("m"), got)
		}
		time.Sleep(24 * time.Hour)
		if got := restarted.Window("m"); got != 8192 {
			t.Errorf("a day later: got %d, want 8192", got)
		}
		time.Sleep(time.Second)
		if got := restarted.Window("m"); got != 0 {
			t.Errorf("after a day: got %d, want none: it is tried again", got)
		}
		c.Told("m", "", 4096)
		c.Fitted("m", 4097)
		if rows := c.Changed(); c.Window("m") != 0 || len(rows) != 1 || rows[0].Window != 0 {
			t.Errorf("after a larger prompt: got window %d, to be saved %+v, want it forgotten", c.Window("m"), rows)
		}
	})
}

// A row of the database that makes no sense teaches nothing but its window.
func TestRestoreKeepsTheWindow(t *testing.T) {
	t.Parallel()
	for _, factor := range []float64{0, -1, math.NaN(), math.Inf(-1)} {
		c := tokens.NewCalibrator(prior(1))
		c.Restore([]core.Calibration{{Model: "m", Factor: factor, Deviation: 0.5, Samples: 9, Window: 5000, WindowAt: new(core.Now())}})
		if got := c.Estimate("m", ""); got.Measured || got.Samples != 0 || got.Factor != 1.1 || c.Window("m") != 5000 {
			t.Errorf("factor %g: got %+v and window %d, want nothing but the window", factor, got, c.Window("m"))
		}
		c.Observe("m", "", 1000, 1000)
		if got := c.Estimate("m", ""); got.Samples != 1 {
			t.Errorf("factor %g: got %+v after a call", factor, got)
		}
	}
}

// A window that was only supposed is believed as far as nothing that was accepted
// before speaks against it.
func TestLearnWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ fitted, want int }{
		"nothing accepted before": {0, 10_000},
		"less accepted before":    {4_000, 10_000},
		"more accepted before":    {14_000, 14_000},
		"as much as was refused":  {20_000, 0},
		"more than was refused":   {60_000, 0},
	} {
		calibrator := tokens.NewCalibrator(prior(1))
		calibrator.Fitted("m", c.fitted)
		calibrator.Fitted("m", c.fitted/2)
		calibrator.LearnWindow("m", 10_000, 20_000)
		if got := calibrator.Window("m"); got != c.want || calibrator.LargestFit("m") != c.fitted {
			t.Errorf("%s: got the window %d, the largest fit %d, want %d and %d", name, got, calibrator.LargestFit("m"), c.want, c.fitted)
		}
	}
}
