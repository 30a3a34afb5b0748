package tokens

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"

	"bobbin/app/core"
)

// Constants of the exponential mean.
const (
	calibrationRate = 0.2
	minFactor       = 0.5
	maxFactor       = 4
	// leastRatio is the smallest ratio that an encoding can have: o200k_base has a quarter of the tokens
	// of cl100k_base in some scripts of India. With maxFactor it bounds what is believed.
	leastRatio = 0.2
	// sessionRate is the rate of a conversation's own mean: its next prompt is almost the
	// same as its last.
	sessionRate = 0.5
	// MeasuredAfter is the number of calls after which the estimate uses the measured
	// factor.
	MeasuredAfter = 5
	// unmeasuredMargin multiplies the prior factor until then.
	unmeasuredMargin = 1.1
)

const (
	// minObserved is the smallest prompt to learn from, in cl100k_base tokens: in smaller
	// prompts a provider's fixed overhead is most of the difference.
	minObserved = 200
	// tightenStep raises the factor when a provider refuses a prompt and does not
	// report its size.
	tightenStep = 1.15
	// priorDeviation is the error that people are shown of an estimate without measurements. It may be more
	// than unmeasuredMargin: a prompt that is too long all the same is refused and sent shorter, while a
	// larger margin would leave a part of each window empty.
	priorDeviation = 0.15
)

// Estimate says how many of a model's tokens one cl100k_base token is.
type Estimate struct {
	Factor    float64
	Measured  bool    // uses at least MeasuredAfter calls
	Deviation float64 // mean relative error of the corrected counts, each against the next call; 0.02 = ± 2 %
	Samples   int     // calls that it uses
}

// Apply converts our tokens to the model's, rounded up.
func (e Estimate) Apply(tokens int) int { return int(math.Ceil(float64(tokens) * e.Factor)) }

// Calibrator corrects our counts by the counts that providers report, with one factor a
// model. The factor depends on the text, so it also keeps a factor for each conversation,
// which replaces the model's: conversations in Chinese and in English do not distort each
// other's counts. Factors of conversations are in memory only. Safe for concurrent use.
type Calibrator struct {
	prior func(model string) float64
	// Warn is called once for each model whose provider reports a count that no encoding can have, with
	// its ratio to ours; nil = it is not. Set it before the first Observe.
	Warn func(model string, ratio float64)

	mu          sync.Mutex
	models      map[string]*calibration // guarded by mu
	largestFits map[string]int          // by model: the largest prompt with its answer that was accepted; guarded by mu
	sessions    *core.Cache[sessionKey, *calibration]
}

// sessionKey is one model in one conversation.
type sessionKey struct {
	model   string
	session core.SessionID
}

// maxSessions bounds the conversations whose calibrations are kept: about 2 MB.
const maxSessions = 8192

// calibration is the state of one model, or of one model in one conversation.
type calibration struct {
	core.Calibration
	tightened bool // the factor began with a refusal: one small ratio must not undo it
	changed   bool // since the last Changed
	warned    bool // of a count that cannot be true
	overload  Overload
}

// NewCalibrator returns a Calibrator without measurements. Prior returns a model's factor
// until it is measured, such as Models.Factor; values of 0 and less count as 1.
func NewCalibrator(prior func(model string) float64) *Calibrator {
	return &Calibrator{prior: prior, models: map[string]*calibration{}, largestFits: map[string]int{}, sessions: core.NewCache[sessionKey, *calibration](maxSessions)}
}

// Observe learns from a call: from our count of its prompt in cl100k_base tokens, and
// the provider's count (input, cache reads and writes together). The factor is the
// exponential mean of the ratios with a rate of 0.2; the first five have equal weight, so
// that it does not depend on a wrong prior. It ignores prompts under 200 tokens,
// invalid numbers, and ratios below 0.2 or above 4, which no encoding can have: a model that reports such
// may never be measured, so its factor is then tightened by one step. Session is the conversation of the prompt; empty = none.
func (c *Calibrator) Observe(model string, session core.SessionID, estimated, provider int) {
	if estimated < minObserved || provider <= 0 {
		return
	}
	ratio := float64(provider) / float64(estimated)
	if ratio < leastRatio || ratio > maxFactor {
		c.mu.Lock()
		m := c.entryOf(model)
		first := !m.warned
		if m.warned = true; first && m.Samples < MeasuredAfter { // it may never be measured
			m.raiseFactor(c.priorOf(model) * tightenStep)
			m.markChanged()
		}
		c.mu.Unlock()
		if first && c.Warn != nil {
			c.Warn(model, ratio)
		}
		return
	}
	ratio = clampFactor(ratio)
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.entryOf(model)
	m.addRatio(ratio, max(calibrationRate, 1/float64(m.Samples+1)))
	m.markChanged()
	if session != "" {
		c.sessionEntry(model, session).addRatio(ratio, sessionRate)
	}
}

// addRatio updates the mean; the caller holds the Calibrator's mu.
func (m *calibration) addRatio(ratio, rate float64) {
	before := m.Factor
	m.Samples++
	switch {
	case m.tightened:
		rate = calibrationRate
	case m.Samples == 1:
		rate = 1
	}
	m.Factor += rate * (ratio - before)
	if n := m.Samples - 1; n > 0 { // the first call has no estimate to compare with
		miss := math.Abs(before-ratio) / ratio
		m.Deviation += max(calibrationRate, 1/float64(n)) * (miss - m.Deviation)
	}
}

// Tighten raises the model's factor after the provider refused a prompt as too
// long: at least to atLeast, the ratio of the provider's count to ours; if that is not
// known (0) or not above the current factor, by 15 %. Never above 4. Later observations
// lower it slowly. Session is as in Observe.
func (c *Calibrator) Tighten(model string, session core.SessionID, atLeast float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.estimateLocked(model, session).Factor
	if atLeast <= now || math.IsNaN(atLeast) {
		atLeast = now * tightenStep
	}
	m := c.entryOf(model)
	m.raiseFactor(atLeast)
	m.markChanged()
	if session != "" {
		c.sessionEntry(model, session).raiseFactor(atLeast)
	}
}

// raiseFactor raises the factor; the caller holds the Calibrator's mu.
func (m *calibration) raiseFactor(factor float64) {
	m.Factor = max(m.Factor, clampFactor(factor))
	m.tightened = true
}

// Estimate returns how the model's counts relate to ours, in the conversation if session
// is not empty. Until five calls are measured it is the prior factor × 1.1, or the
// measured or tightened factor if that is larger.
func (c *Calibrator) Estimate(model string, session core.SessionID) Estimate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.estimateLocked(model, session)
}

// estimateLocked is Estimate; the caller holds c.mu.
func (c *Calibrator) estimateLocked(model string, session core.SessionID) Estimate {
	m := cmp.Or(c.models[model], &calibration{})
	if m.Samples < MeasuredAfter {
		return Estimate{Factor: max(c.priorOf(model), m.Factor), Deviation: priorDeviation, Samples: m.Samples}
	}
	e := Estimate{Factor: m.Factor, Measured: true, Deviation: m.Deviation, Samples: m.Samples}
	if own, ok := c.sessions.Get(sessionKey{model, session}); ok && own.Factor > 0 {
		e.Factor = own.Factor
		if own.Samples > 1 { // one call has no error yet
			e.Deviation = own.Deviation
		}
	}
	return e
}

// priorOf returns the factor of a model that is not measured.
func (c *Calibrator) priorOf(model string) float64 {
	prior := c.prior(model)
	if prior <= 0 {
		prior = 1
	}
	return clampFactor(prior * unmeasuredMargin)
}

// Estimates returns the estimate of every model with measurements or a reported window.
func (c *Calibrator) Estimates() map[string]Estimate {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]Estimate, len(c.models))
	for name := range c.models {
		all[name] = c.estimateLocked(name, "")
	}
	return all
}

// Restore loads saved calibrations, at start-up; models that were observed since keep
// theirs. It clamps factors that are out of range.
func (c *Calibrator) Restore(rows []core.Calibration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, row := range rows {
		if _, ok := c.models[row.Model]; ok {
			continue
		}
		if row.Factor > 0 { // false for NaN
			row.Factor = clampFactor(row.Factor)
		} else {
			row.Factor, row.Deviation, row.Samples = 0, 0, 0
		}
		c.models[row.Model] = &calibration{Calibration: row, tightened: row.Samples == 0 && row.Factor > 0}
	}
}

// Changed returns the calibrations that changed since the last call, sorted by model. The
// caller saves them; a row that it could not save is returned again after the model's next
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

// entryOf returns the model's entry, or creates it; the caller holds c.mu.
func (c *Calibrator) entryOf(model string) *calibration {
	m, ok := c.models[model]
	if !ok {
		m = &calibration{Calibration: core.Calibration{Model: model}}
		c.models[model] = m
	}
	return m
}

// sessionEntry returns the entry of the model in the conversation, or creates it; the caller holds c.mu.
func (c *Calibrator) sessionEntry(model string, session core.SessionID) *calibration {
	key := sessionKey{model, session}
	m, ok := c.sessions.Get(key)
	if !ok {
		m = &calibration{}
		c.sessions.Set(key, m)
	}
	return m
}

// markChanged marks the entry as changed; the caller holds the Calibrator's mu.
func (m *calibration) markChanged() {
	m.UpdatedAt = core.Now()
	m.changed = true
}

func clampFactor(factor float64) float64 { return min(max(factor, minFactor), maxFactor) }
