package contextwindow_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/tests/compare"
)

// A prompt that begins with an earlier system prompt goes on to the current one without the messages
// that the provider may refuse, whose changes of it go with them.
func TestWithoutKeepsTheSetup(t *testing.T) {
	t.Parallel()
	d := contextwindow.Decision{Frozen: "earlier", Setup: "current", History: []contextwindow.Slot{{Place: core.PlaceVerbatim}}}
	alone, _ := d.Without(func(int64) bool { return true }, false)
	compare.Equal(t, "messages before and after, goes on to the current setup", []any{1, 0, true}, []any{len(d.History), len(alone.History), alone.AppendsSetup})
}
