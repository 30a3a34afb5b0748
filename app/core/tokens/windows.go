package tokens

import (
	"time"

	"bobbin/app/core"
)

const (
	// toldFor is how long a window holds that a provider told when it refused a
	// prompt: models are moved to other servers, and accounts to other limits. After
	// that a prompt may be refused once more.
	toldFor = 24 * time.Hour
	// leastTold is the smallest window that is believed beyond the run that was
	// refused: less is no window of a model in use.
	leastTold = 1024
)

// Told takes over the window that a provider told when it refused a prompt.
func (c *Calibrator) Told(model string, window int) {
	if window < leastTold {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.of(model)
	m.Window, m.WindowAt = window, new(core.Now())
	m.touch()
}

// Window returns the window that the provider told, in the model's tokens; 0 = none
// was told that still holds.
func (c *Calibrator) Window(model string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.models[model]
	if m == nil || m.Window == 0 || m.WindowAt == nil || time.Since(*m.WindowAt) > toldFor {
		return 0
	}
	return m.Window
}

// Fitted learns from a call that succeeded: a prompt and an answer of so many tokens
// together fit. A window that was told and is smaller is forgotten.
func (c *Calibrator) Fitted(model string, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.models[model]
	if m == nil || m.Window == 0 || total <= m.Window {
		return
	}
	m.Window, m.WindowAt = 0, nil
	m.touch()
}
