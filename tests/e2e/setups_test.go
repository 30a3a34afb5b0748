package e2e_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/apptest"
)

// promptTexts returns the system prompt of the session's next prompt, and those that are appended.
func promptTexts(t *testing.T, h *apptest.Bobbin, id core.SessionID) (first string, appended []string) {
	t.Helper()
	prompt, err := h.Prompt(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range prompt.Messages {
		if m.Placement == core.PlaceSystem {
			appended = append(appended, m.Content)
		}
	}
	return strings.Join(prompt.System, "\n"), appended
}
