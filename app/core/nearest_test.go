package core_test

import (
	"testing"

	"bobbin/app/core"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"policy", "timing", "strategy", "limits.run_time", "addr"}
	for word, want := range map[string]string{
		"polcy": "policy", "poilcy": "policy", "Policy": "policy", "timeing": "timing", "strategie": "strategy",
		"limits.runtime": "limits.run_time", "adr": "addr", "": "", "x": "", "something else": "",
	} {
		if got := core.Nearest(word, known); got != want {
			t.Errorf("Nearest(%q): got %q, want %q", word, got, want)
		}
	}
	if got := core.Nearest("policy", nil); got != "" {
		t.Errorf("Nearest among none: got %q, want none", got)
	}
}
