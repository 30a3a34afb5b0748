package tokens

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"

	"bobbin/app/core"
)

// Constants of CONTEXT § 5.
const (
	calibrationRate = 0.2 // of the exponential mean
	minFactor       = 0.5
	maxFactor       = 4
	// MeasuredAfter calls the estimate rests on what was measured.
	MeasuredAfter = 5
	// unmeasured is what the prior factor is multiplied by until then.
	unmeasured = 1.1
)

const (
	// minObserved is the smallest prompt, in cl100k_base tokens, that teaches
	// anything: in smaller ones a provider's fixed overheads are most of the
	// difference.
	minObserved = 200
	// tightenStep raises the factor when a provider refused a prompt and did not
	// say how large it was.
	tightenStep = 1.15
	// priorDeviation is what an estimate that was not measured may be off.
	priorDeviation = 0.15
)

// Estimate says how many of a model's tokens one cl100k_base token is.
type Estimate struct {
	Factor    float64
	Measured  bool    // rests on at least MeasuredAfter calls
	Deviation float64 // mean relative error of the corrected count, 0.02 = ± 2 %
	Samples   int     // calls that it rests on
}

// Apply returns the model's tokens for so many of ours, rounded up.
func (e Estimate) Apply(tokens int) int {
	return int(math.Ceil(float64(tokens) * e.Factor))
}

// Calibrator corrects our counts by what providers report, a factor a model
// (CONTEXT § 5). Safe for concurrent use.
type Calibrator struct {
	prior func(model string) float64

	mu     sync.Mutex
	models map[string]*measured // guarded by mu
}

// measured is what is known of one model.
type measured struct {
	core.Calibration
	tightened bool // the factor began with a refusal: a first small ratio must not undo it
	changed   bool // since the last Changed
}

// NewCalibrator returns a Calibrator that knows nothing yet. Prior tells a model's
// factor before anything was measured, such as Models.Factor; values of 0 and less
// count as 1.
func NewCalibrator(prior func(model string) float64) *Calibrator {
	return &Calibrator{prior: prior, models: map[string]*measured{}}
}

// Observe learns from a call: what we counted for its prompt in cl100k_base
// tokens, and what the provider counted (input, cache reads and writes together).
// The factor is the exponential mean of the ratios with a rate of 0.2; the first
// five count alike, so that it does not depend on a wrong prior. Prompts under 200
// tokens and numbers that make no sense are left out.
func (c *Calibrator) Observe(model string, estimated, provider int) {
	if estimated < minObserved || provider <= 0 {
		return
	}
	ratio := clamp(float64(provider) / float64(estimated))
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.of(model)
	expected := c.estimate(m).Factor
	m.Samples++
	rate := calibrationRate
	if !m.tightened {
		rate = max(rate, 1/float64(m.Samples))
	}
	m.Factor += rate * (ratio - m.Factor)
	miss := math.Abs(expected-ratio) / ratio
	m.Deviation += max(calibrationRate, 1/float64(m.Samples)) * (miss - m.Deviation)
	m.touch()
}

// Tighten raises the model's factor after the provider refused a prompt as too
// long: at least to atLeast, the ratio of what the provider counted to what we
// did; if that is not known (0) or not above the present factor, by 15 %. Never
// above 4. Later observations bring it down again, slowly.
func (c *Calibrator) Tighten(model string, atLeast float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.of(model)
	now := c.estimate(m).Factor
	if atLeast <= now || math.IsNaN(atLeast) {
		atLeast = now * tightenStep
	}
	m.Factor = clamp(atLeast)
	m.tightened = true
	m.touch()
}

// Estimate returns how the model's counts relate to ours. Until five calls were
// measured it is the prior factor × 1.1, or what was measured or tightened so far
// if that is more.
func (c *Calibrator) Estimate(model string) Estimate {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.models[model]
	if !ok {
		m = &measured{Calibration: core.Calibration{Model: model}}
	}
	return c.estimate(m)
}

// Estimates returns the estimate of every model that something is known of.
func (c *Calibrator) Estimates() map[string]Estimate {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]Estimate, len(c.models))
	for name, m := range c.models {
		all[name] = c.estimate(m)
	}
	return all
}

// Restore takes over what was saved before, such as at start-up; models that have
// been observed since keep what they have. Factors out of range are clamped.
func (c *Calibrator) Restore(rows []core.Calibration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, row := range rows {
		if _, ok := c.models[row.Model]; ok || row.Factor <= 0 || math.IsNaN(row.Factor) {
			continue
		}
		row.Factor = clamp(row.Factor)
		c.models[row.Model] = &measured{Calibration: row, tightened: row.Samples == 0}
	}
}

// Changed returns what has changed since the last call, sorted by model, to be
// saved. A row that could not be saved comes again with the model's next
// observation.
func (c *Calibrator) Changed() []core.Calibration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var rows []core.Calibration
	for m := range maps.Values(c.models) {
		if m.changed {
			m.changed = false
			rows = append(rows, m.Calibration)
		}
	}
	slices.SortFunc(rows, func(a, b core.Calibration) int { return cmp.Compare(a.Model, b.Model) })
	return rows
}

// of returns the model's entry, new if there is none; c.mu is held.
func (c *Calibrator) of(model string) *measured {
	m, ok := c.models[model]
	if !ok {
		m = &measured{Calibration: core.Calibration{Model: model}}
		c.models[model] = m
	}
	return m
}

// estimate returns what m amounts to; c.mu is held.
func (c *Calibrator) estimate(m *measured) Estimate {
	if m.Samples >= MeasuredAfter {
		return Estimate{Factor: m.Factor, Measured: true, Deviation: m.Deviation, Samples: m.Samples}
	}
	prior := c.prior(m.Model)
	if prior <= 0 {
		prior = 1
	}
	return Estimate{Factor: max(clamp(prior*unmeasured), m.Factor), Deviation: priorDeviation, Samples: m.Samples}
}

// touch notes that the entry has changed; the Calibrator's mu is held.
func (m *measured) touch() {
	m.UpdatedAt = core.Now()
	m.changed = true
}

func clamp(factor float64) float64 { return min(max(factor, minFactor), maxFactor) }
