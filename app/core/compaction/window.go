package compaction

import (
	"cmp"

	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// window returns the window that the turn is planned for, and where it comes from. One
// that the provider told when it refused a prompt holds for the model, unless the
// operator set another; in the run that was refused it holds in any case.
func (k *Keeper) window(t Turn) (int, llm.WindowSource) {
	info := t.Profile.Model.Info()
	window, from := info.Window, cmp.Or(info.WindowFrom, llm.WindowKnown)
	if window <= 0 {
		window, from = contextwindow.UnknownWindow, llm.WindowAssumed
	}
	told := t.Window
	if from != llm.WindowConfigured {
		told = least(told, k.Calibrator.Window(info.Name))
	}
	if told > 0 && told < window {
		return told, llm.WindowTold
	}
	return window, from
}

// least returns the smaller of two numbers that are known; 0 = one is not.
func least(a, b int) int {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// narrowed is a model of which a smaller window is known than it says itself.
type narrowed struct {
	llm.Model
	window int
}

// Info describes the model.
func (m narrowed) Info() llm.Info {
	info := m.Model.Info()
	info.Window = m.window
	return info
}
