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
	// maxAssumedFloor is the most that LearnWindow keeps of a window at any rate.
	maxAssumedFloor = 8192
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

// LearnWindow stores an assumed window for the conversation alone, after a provider refused a prompt and its
// answer of refused tokens without saying why or how long one may be, and accepted the next prompt in that
// window. Length may not have been the reason, so the window is at least a quarter of refused (at most
// maxAssumedFloor) and a total that has fit; nothing is stored if as much as refused has fit.
func (c *Calibrator) LearnWindow(model string, session core.SessionID, window, refused int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if fitted := c.largestFits[model]; fitted < refused {
		own := c.sessionEntry(model, session)
		own.Window, own.WindowAt = max(window, fitted, min(refused/4, maxAssumedFloor), minReportedWindow), new(core.Now())
	}
}

// Overload says whether the provider of a model was overloaded by the last message of a conversation.
type Overload int

// The values of Overload.
const (
	NotOverloaded     Overload = iota
	Overloaded                 // it gave no answer
	OverloadedAtFirst          // it answered a shorter prompt
)

// Overload returns what SetOverload stored last, in this process.
func (c *Calibrator) Overload(model string, session core.SessionID) Overload {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessionEntry(model, session).overload
}

// SetOverload stores whether the conversation's message overloaded the model's provider.
func (c *Calibrator) SetOverload(model string, session core.SessionID, o Overload) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessionEntry(model, session).overload = o
}

// Learned returns what the answers of the model's provider have shown, which is kept over restarts.
func (c *Calibrator) Learned(model string) core.Calibration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.models[model]; m != nil {
		return m.Calibration
	}
	return core.Calibration{}
}

// Learn changes what is kept of the model's provider, by something that an answer showed.
func (c *Calibrator) Learn(model string, change func(*core.Calibration)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.entryOf(model)
	change(&m.Calibration)
	m.markChanged()
}
