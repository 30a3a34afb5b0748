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

// narrowed returns the model that writes a summary of the turn, with the window that
// its provider told when that is smaller than what it says itself.
func (k *Keeper) narrowed(t Turn, model llm.Model) llm.Model {
	writing := Turn{Profile: Profile{Model: model}}
	if model.Info().Name == t.Profile.Model.Info().Name {
		writing.Window = t.Window
	}
	window, from := k.window(writing)
	if from != llm.WindowTold {
		return model
	}
	return windowed{model, window}
}

// windowed is a model with another window than it says itself.
type windowed struct {
	llm.Model
	window int
}

// Info describes the model.
func (m windowed) Info() llm.Info {
	info := m.Model.Info()
	info.Window = m.window
	return info
}
