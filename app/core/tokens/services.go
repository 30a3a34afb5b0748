package tokens

import "bobbin/app/core"

// Calibration learns how the models' token counts differ from ours, and what fits into their
// windows. Calibrator implements it; tests record what it learns.
type Calibration interface {
	Estimate(model string, session core.SessionID) Estimate
	// Observe records our count in cl100k_base tokens and the provider's count.
	Observe(model string, session core.SessionID, estimated, provider int)
	// Tighten raises the estimate for a model after it refused a prompt as too long; ratio is
	// how far we were off, 0 = not known.
	Tighten(model string, session core.SessionID, ratio float64)
	// Window returns the window that the model's provider reported when it refused a prompt;
	// 0 = none; SessionWindow, if it did so in the conversation. Told records such a window.
	Window(model string) int
	SessionWindow(model string, session core.SessionID) int
	Told(model string, session core.SessionID, window int)
	// Fitted records that a prompt and its answer of so many tokens fit. LargestFit returns the
	// largest of these; 0 = none is known.
	Fitted(model string, total int)
	LargestFit(model string) int
	// LearnWindow records a window for which a prompt was planned and accepted after one of so
	// many tokens, with its answer, was refused.
	LearnWindow(model string, window, refused int)
	// PrefixContract returns the model's contract for thoughts (llm.PrefixContract), as far as its
	// provider's answers showed it; empty = not at all. LearnPrefixContract records it.
	PrefixContract(model string) string
	LearnPrefixContract(model, contract string)
	// RefusesToolChanges reports whether the model's provider refused messages that add or remove
	// tools. LearnToolChangesRefused records it.
	RefusesToolChanges(model string) bool
	LearnToolChangesRefused(model string)
}

var _ Calibration = (*Calibrator)(nil)
