package contextwindow_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/tests/compare"
)

// A prompt that begins with an earlier system prompt goes on to the current one behind what a filter
// refused, whose changes of it go with the messages.
func TestLeaveOutKeepsTheSetup(t *testing.T) {
	t.Parallel()
	slot := func(role core.Role, calls ...string) contextwindow.Slot {
		return contextwindow.Slot{Item: contextwindow.Item{Role: role, Calls: calls}, Place: core.PlaceVerbatim}
	}
	d := contextwindow.Decision{Frozen: "earlier", Setup: "current", History: []contextwindow.Slot{
		slot(core.RoleUser), slot(core.RoleAssistant), slot(core.RoleUser), slot(core.RoleAssistant, "c1"), slot(core.RoleTool), slot(core.RoleUser), slot(core.RoleAssistant), slot(core.RoleUser), slot(core.RoleAssistant),
	}}
	d.History[8].Filtered = true
	for r, want := range map[contextwindow.Refused]string{contextwindow.RefusedNothing: ".........", contextwindow.RefusedUnanswered: "..xxx..xx", contextwindow.RefusedAll: "xxxxxxxxx"} {
		got, places := d.LeaveOut(r), ""
		for _, s := range got.History {
			places += map[core.Placement]string{core.PlaceVerbatim: ".", core.PlaceLeftOut: "x"}[s.Place]
		}
		compare.Equal(t, "left out, goes on to the current setup", []any{want, r != contextwindow.RefusedNothing}, []any{places, got.AppendsSetup})
	}
}
