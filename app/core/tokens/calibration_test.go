package tokens_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/app/core/tokens"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

func prior(factor float64) func(string) float64 { return func(string) float64 { return factor } }

// Within 10 calls the estimate is within 5 %, whatever the prior was, and the deviation says so.
func TestRow11CalibrationConverges(t *testing.T) {
	t.Parallel()
	for _, before := range []float64{0.5, 1, 1.55} {
		for _, real := range []float64{0.6, 0.95, 1.15, 1.4, 3.5} {
			c := tokens.NewCalibrator(prior(before))
			for range 10 {
				c.Observe("m", "", 10_000, int(10_000*real))
			}
			got := c.Estimate("m", "")
			compare.True(t, math.Abs(got.Factor-real)/real <= 0.05, "prior %g, provider × %g: factor %g after 10 calls, want ± 5 %%", before, real, got.Factor)
			compare.Equal(t, fmt.Sprintf("prior %g, provider × %g: measured, samples", before, real), []any{true, 10}, []any{got.Measured, got.Samples})
		}
	}
}

// Until five calls were measured the estimate is the prior × 1.1.
func TestCalibratorUnmeasured(t *testing.T) {
	t.Parallel()
	c := tokens.NewCalibrator(prior(1.2))
	for i := range 5 {
		got := c.Estimate("m", "")
		want := 1.2 * 1.1
		compare.True(t, math.Abs(got.Factor-want) <= 1e-9 && !got.Measured && got.Samples == i && got.Deviation == 0.15, "after %d calls: got %+v, want factor %g, not measured, ± 15 %%", i, got, want)
		c.Observe("m", "", 1000, 1000)
	}
	got := c.Estimate("m", "")
	compare.True(t, got.Measured && math.Abs(got.Factor-1) <= 1e-9, "after 5 calls: got %+v, want factor 1, measured", got)
	if got := tokens.NewCalibrator(prior(0)).Estimate("m", "").Factor; math.Abs(got-1.1) > 1e-9 {
		t.Errorf("without a prior: got factor %g, want 1.1", got)
	}
}

// Small prompts teach nothing: a provider's fixed overhead of 80 tokens makes 2.6×
// of a greeting. Neither do counts that no encoding can have, but that the model may never be measured:
// its prompts are estimated one step higher, once.
func TestCalibratorIgnores(t *testing.T) {
	t.Parallel()
	c, warned := tokens.NewCalibrator(prior(1)), 0
	c.Warn = func(string, float64) { warned++ }
	for range 20 {
		c.Observe("m", "", 50, 130)
		c.Observe("m", "", 199, 800)
		c.Observe("m", "", 5000, 0)
		c.Observe("m", "", 5000, -1)
		c.Observe("m", "", 0, 10)
		c.Observe("m", "", 5000, 150) // only what was not cached
		c.Observe("m", "", 5000, 50_000)
	}
	compare.Equal(t, "number of warnings", 1, warned)
	got := c.Estimate("m", "")
	compare.True(t, got.Samples == 0 && math.Abs(got.Factor-1.1*1.15) <= 1e-9, "after calls that teach nothing: got %+v, want nothing learned", got)
	compare.Equal(t, "Changed", 1, len(c.Changed()))
	c = tokens.NewCalibrator(prior(1))
	for range 10 {
		c.Observe("m", "", 199, 800)
	}
	compare.Equal(t, "Changed by small prompts", 0, len(c.Changed()))
	for range tokens.MeasuredAfter {
		c.Observe("m", "", 5000, 5000)
	}
	c.Observe("m", "", 5000, 50_000)
	compare.Equal(t, "the factor of a measured model after a count that cannot be true", 1.0, c.Estimate("m", "").Factor)
}

// The factor stays within 0.5 and 4 whatever is reported.
func TestCalibratorClamps(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(rt *rapid.T) {
		c := tokens.NewCalibrator(prior(rapid.Float64Range(-1, 10).Draw(rt, "prior")))
		for range rapid.IntRange(0, 20).Draw(rt, "calls") {
			switch rapid.IntRange(0, 2).Draw(rt, "what") {
			case 0:
				c.Observe("m", "", rapid.Int().Draw(rt, "estimated"), rapid.Int().Draw(rt, "provider"))
			case 1:
				c.Tighten("m", "", rapid.Float64().Draw(rt, "ratio"))
			case 2:
				c.Tighten("m", "", rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1)}).Draw(rt, "odd"))
			}
			if got := c.Estimate("m", "").Factor; !(got >= 0.5 && got <= 4) {
				rt.Fatalf("factor: got %g, want 0.5 to 4", got)
			}
		}
	})
}

// After a provider's context length error the estimate is tighter.
func TestCalibratorTighten(t *testing.T) {
	t.Parallel()
	c := tokens.NewCalibrator(prior(1))
	c.Tighten("m", "", 1.6)
	compare.Equal(t, "told 1.6: factor", 1.6, c.Estimate("m", "").Factor)
	c.Tighten("m", "", 1.2) // refused though we counted more than told
	if got, want := c.Estimate("m", "").Factor, 1.6*1.15; math.Abs(got-want) > 1e-9 {
		t.Errorf("told 1.2 at 1.6: got factor %g, want %g", got, want)
	}
	c.Tighten("m", "", 0)
	if got, want := c.Estimate("m", "").Factor, 1.6*1.15*1.15; math.Abs(got-want) > 1e-9 {
		t.Errorf("told nothing: got factor %g, want %g", got, want)
	}
	c.Observe("m", "", 10_000, 10_000)
	got := c.Estimate("m", "").Factor
	compare.True(t, got >= 1.8, "one small ratio after a refusal: got factor %g, want it to come down slowly", got)
	for range 30 {
		c.Observe("m", "", 10_000, 10_000)
	}
	if got := c.Estimate("m", "").Factor; math.Abs(got-1) > 0.05 {
		t.Errorf("30 calls at 1: got factor %g, want 1", got)
	}
	if got := c.Estimate("other", "").Factor; math.Abs(got-1.1) > 1e-9 {
		t.Errorf("another model: got factor %g, want 1.1 untouched", got)
	}
}

func TestCalibratorSavesAndRestores(t *testing.T) {
	t.Parallel()
	c := tokens.NewCalibrator(prior(1))
	for range 6 {
		c.Observe("b", "", 1000, 1400)
		c.Observe("a", "", 1000, 900)
	}
	rows := c.Changed()
	must.True(t, len(rows) == 2 && rows[0].Model == "a" && rows[1].Model == "b" && !rows[0].UpdatedAt.IsZero(), "Changed: got %+v, want a and b with a time", rows)
	compare.Equal(t, "Changed again", 0, len(c.Changed()))
	c.Observe("b", "", 1000, 1400)
	again := c.Changed()
	compare.True(t, len(again) == 1 && again[0].Model == "b" && again[0].Samples == 7, "Changed after b was observed: got %+v, want b alone", again)

	restored := tokens.NewCalibrator(prior(1))
	restored.Restore(append(rows, core.Calibration{Model: "broken", Factor: math.NaN(), Samples: 9}, core.Calibration{Model: "far", Factor: 99, Samples: 9}))
	for _, model := range []string{"a", "b"} {
		want := tokens.Estimate{Factor: map[string]float64{"a": 0.9, "b": 1.4}[model], Measured: true, Samples: 6}
		got := restored.Estimate(model, "")
		compare.Equal(t, fmt.Sprintf("restored %s", model), want, got, cmpopts.EquateApprox(0, 1e-9), cmpopts.IgnoreFields(tokens.Estimate{}, "Deviation"))
	}
	compare.Equal(t, "restored factor 99", 4, restored.Estimate("far", "").Factor)
	compare.Equal(t, "restored NaN: want it left out", 0, restored.Estimate("broken", "").Samples)
	compare.Equal(t, "Changed after Restore", 0, len(restored.Changed()))
	c.Restore([]core.Calibration{{Model: "b", Factor: 3, Samples: 100}})
	compare.Equal(t, "Restore over a model that was observed: samples: want its own 7", 7, c.Estimate("b", "").Samples)
}

// A refusal that nothing was measured after holds over a restart.
func TestCalibratorRestoresRefusal(t *testing.T) {
	t.Parallel()
	c := tokens.NewCalibrator(prior(1))
	c.Tighten("m", "", 2)
	restored := tokens.NewCalibrator(prior(1))
	restored.Restore(c.Changed())
	restored.Observe("m", "", 1000, 1000)
	got := restored.Estimate("m", "").Factor
	compare.True(t, math.Abs(got-1.8) <= 1e-9, "refused at 2, restarted, one call at 1: got factor %g, want 1.8", got)
}

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
		got := c.Estimate("m", id)
		compare.True(t, got.Factor >= 0.7 && got.Factor <= 0.95 && got.Deviation >= 0.15, "session %q: got %+v, want the model's mean, and how far that is off", id, got)
	}
	got := c.Estimate("other", "english")
	compare.True(t, !got.Measured, "another model in the same conversation: got %+v, want it not measured", got)
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
		got := c.Estimate("m", id).Factor
		compare.True(t, math.Abs(got-want) <= 1e-9, "%s: got %g, want %g", id, got, want)
	}
}
