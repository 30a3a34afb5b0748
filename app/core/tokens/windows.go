package tokens

import (
	"time"

	"bobbin/app/core"
)

const (
	// reportedWindowTTL is how long a window is valid that a provider reported when it
	// refused a prompt: models move to other servers, and accounts to other limits. After
	// that a prompt may be refused again.
	reportedWindowTTL = 24 * time.Hour
	// minReportedWindow is the smallest window that is stored for later runs: no model in
	// use has a smaller one.
	minReportedWindow = 1024
)

// Told stores the window that a provider reported when it refused a prompt, for all conversations and,
// if session is not empty, for that one.
func (c *Calibrator) Told(model string, session core.SessionID, window int) {
	if window < minReportedWindow {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.entryOf(model)
	m.Window, m.WindowAt = window, new(core.Now())
	m.markChanged()
	if session != "" {
		own := c.sessionEntry(model, session)
		own.Window, own.WindowAt = m.Window, m.WindowAt
	}
}

// Window returns the window that the provider reported, in the model's tokens; 0 = none,
// or it has expired.
func (c *Calibrator) Window(model string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.models[model].reportedWindow()
}

// SessionWindow is Window for what this process has stored for the conversation alone.
func (c *Calibrator) SessionWindow(model string, session core.SessionID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	own, _ := c.sessions.Get(sessionKey{model, session})
	return own.reportedWindow()
}

// reportedWindow returns the window unless it has expired; 0 = none. The calibration may be nil.
func (m *calibration) reportedWindow() int {
	if m == nil || m.Window == 0 || m.WindowAt == nil || time.Since(*m.WindowAt) > reportedWindowTTL {
		return 0
	}
	return m.Window
}

// Fitted learns from a call that succeeded: a prompt and an answer of total tokens fit.
// It drops a reported window that is smaller.
func (c *Calibrator) Fitted(model string, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.largestFits[model] = max(c.largestFits[model], total)
	m := c.models[model]
	if m == nil || m.Window == 0 || total <= m.Window {
		return
	}
	m.Window, m.WindowAt = 0, nil
	m.markChanged()
}

// LargestFit returns the largest total that Fitted received in this process, in the
// model's tokens; 0 = none.
func (c *Calibrator) LargestFit(model string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.largestFits[model]
}

// LearnWindow stores an assumed window as Told does, after a provider refused a prompt and its answer
// of refused tokens, and accepted the next prompt in that window. It never goes below a
// total that has fit: one caller's unusual request does not make the window of all others
// smaller.
func (c *Calibrator) LearnWindow(model string, session core.SessionID, window, refused int) {
	if fitted := c.LargestFit(model); fitted < refused {
		c.Told(model, session, max(window, fitted))
	}
}

// PrefixContract returns what the answers of the model's provider have shown of its contract for
// thoughts (llm.PrefixContract); empty = nothing.
func (c *Calibrator) PrefixContract(model string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.models[model]; m != nil {
		return m.PrefixContract
	}
	return ""
}

// LearnPrefixContract stores the contract for thoughts that an answer of the model's provider showed.
func (c *Calibrator) LearnPrefixContract(model, contract string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.entryOf(model)
	m.PrefixContract = contract
	m.markChanged()
}

// RefusesToolChanges reports whether the model's provider refused messages that add or remove tools.
func (c *Calibrator) RefusesToolChanges(model string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.models[model]
	return m != nil && m.RefusesToolChanges
}

// LearnToolChangesRefused stores that the model's provider refused messages that add or remove tools.
func (c *Calibrator) LearnToolChangesRefused(model string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.entryOf(model)
	m.RefusesToolChanges = true
	m.markChanged()
}
