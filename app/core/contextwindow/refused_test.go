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
	alone := d.Without(func(int64) bool { return true }, false)
	compare.Equal(t, "places, goes on to the current setup", []any{core.PlaceVerbatim, core.PlaceLeftOut, true}, []any{d.History[0].Place, alone.History[0].Place, alone.AppendsSetup})
}
