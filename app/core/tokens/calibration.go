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
	// sessionRate is that of a conversation's own mean: its next prompt is hardly
	// another one than its last.
	sessionRate = 0.5
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
	Deviation float64 // mean relative error of the corrected counts, each against the call after it; 0.02 = ± 2 %
	Samples   int     // calls that it rests on
}

// Apply returns the model's tokens for so many of ours, rounded up.
func (e Estimate) Apply(tokens int) int {
	return int(math.Ceil(float64(tokens) * e.Factor))
}

// Calibrator corrects our counts by what providers report, a factor a model
// (CONTEXT § 5). A model does not count all texts alike: by the same rule it also
// keeps a factor for each conversation, which takes the model's place where there is
// one, so that one in Chinese and one in English do not spoil each other's counts.
// These are kept in memory only. Safe for concurrent use.
type Calibrator struct {
	prior func(model string) float64

	mu       sync.Mutex
	models   map[string]*measured // guarded by mu
	sessions generations          // guarded by mu
}

// measured is what is known of one model, or of one model in one conversation.
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
// tokens and numbers that make no sense are left out. Session is the conversation
// whose prompt it was; empty = none.
func (c *Calibrator) Observe(model string, session core.SessionID, estimated, provider int) {
	if estimated < minObserved || provider <= 0 {
		return
	}
	ratio := clamp(float64(provider) / float64(estimated))
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.of(model)
	m.observe(ratio, max(calibrationRate, 1/float64(m.Samples+1)))
	m.touch()
	if session != "" {
		c.sessions.of(key{model, session}).observe(ratio, sessionRate)
	}
}

// observe takes a ratio into the mean; the Calibrator's mu is held.
func (m *measured) observe(ratio, rate float64) {
	before := m.Factor
	m.Samples++
	switch {
	case m.tightened:
		rate = calibrationRate
	case m.Samples == 1:
		rate = 1
	}
	m.Factor += rate * (ratio - before)
	if n := m.Samples - 1; n > 0 { // the first call corrects, and is not corrected
		miss := math.Abs(before-ratio) / ratio
		m.Deviation += max(calibrationRate, 1/float64(n)) * (miss - m.Deviation)
	}
}

// Tighten raises the model's factor after the provider refused a prompt as too
// long: at least to atLeast, the ratio of what the provider counted to what we
// did; if that is not known (0) or not above the present factor, by 15 %. Never
// above 4. Later observations bring it down again, slowly. Session is as in Observe.
func (c *Calibrator) Tighten(model string, session core.SessionID, atLeast float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.estimate(model, session).Factor
	if atLeast <= now || math.IsNaN(atLeast) {
		atLeast = now * tightenStep
	}
	m := c.of(model)
	m.tighten(atLeast)
	m.touch()
	if session != "" {
		c.sessions.of(key{model, session}).tighten(atLeast)
	}
}

// tighten raises the factor; the Calibrator's mu is held.
func (m *measured) tighten(factor float64) {
	m.Factor = max(m.Factor, clamp(factor))
	m.tightened = true
}

// Estimate returns how the model's counts relate to ours, in a conversation if one is
// named. Until five calls were measured it is the prior factor × 1.1, or what was
// measured or tightened so far if that is more.
func (c *Calibrator) Estimate(model string, session core.SessionID) Estimate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.estimate(model, session)
}

// estimate is Estimate; c.mu is held.
func (c *Calibrator) estimate(model string, session core.SessionID) Estimate {
	m := c.models[model]
	if m == nil {
		m = &measured{}
	}
	if m.Samples < MeasuredAfter {
		prior := c.prior(model)
		if prior <= 0 {
			prior = 1
		}
		return Estimate{Factor: max(clamp(prior*unmeasured), m.Factor), Deviation: priorDeviation, Samples: m.Samples}
	}
	e := Estimate{Factor: m.Factor, Measured: true, Deviation: m.Deviation, Samples: m.Samples}
	if own := c.sessions.get(key{model, session}); own != nil {
		e.Factor = own.Factor
		if own.Samples > 1 { // one call says nothing about how far the next is off
			e.Deviation = own.Deviation
		}
	}
	return e
}

// Estimates returns the estimate of every model that something is known of.
func (c *Calibrator) Estimates() map[string]Estimate {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]Estimate, len(c.models))
	for name := range c.models {
		all[name] = c.estimate(name, "")
	}
	return all
}

// Restore takes over what was saved before, such as at start-up; models that have
// been observed since keep what they have. Factors out of range are clamped.
func (c *Calibrator) Restore(rows []core.Calibration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, row := range rows {
		if _, ok := c.models[row.Model]; ok {
			continue
		}
		if row.Factor > 0 { // no number is not
			row.Factor = clamp(row.Factor)
		} else {
			row.Factor, row.Deviation, row.Samples = 0, 0, 0
		}
		c.models[row.Model] = &measured{Calibration: row, tightened: row.Samples == 0 && row.Factor > 0}
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

// touch notes that the entry has changed; the Calibrator's mu is held.
func (m *measured) touch() {
	m.UpdatedAt = core.Now()
	m.changed = true
}

func clamp(factor float64) float64 { return min(max(factor, minFactor), maxFactor) }
