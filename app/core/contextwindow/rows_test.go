package contextwindow_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
)

// Failures of other products that the plan rules out, numbered; number 14 is in budget_test.go.

// W12: in mid-session from a 128K to an 8K model, in any policy:
// the next prompt fits, and back on the large one all that is left is there again.
func TestRow15SwitchToASmallerWindow(t *testing.T) {
	t.Parallel()
	for _, name := range cw.PresetNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := new(talk)
			for range 6 {
				c.turns(1, 1_500).user(200).round(2_000, 500).answer(300)
			}
			c.user(100)
			in := c.during(preset(t, name, func(p *cw.Policy) { p.MaxMessages, p.WindowMessages = 0, 0 }), 128_000, int64(len(c.log)))
			d, state := cw.Plan(in)
			whole := fits(t, c, in, d, d.Budget.Trigger)
			if len(whole.Messages) != len(c.log) || d.Compacted {
				t.Fatalf("on 128K: got %d messages, compacted %v, want all %d as they are", len(whole.Messages), d.Compacted, len(c.log))
			}

			in.Model.Window, in.State = 8_192, state
			d, state = cw.Plan(in)
			if d.Summarize != nil {
				in = in.After(*d.Summarize, d.Summarize.Limit, d.Summarize.Messages)
				in.State = state
				d, state = cw.Plan(in)
			}
			fits(t, c, in, d, d.Budget.Landing)
			if !d.Compacted {
				t.Error("on 8K: nothing is to be stored")
			}

			in.Model.Window, in.State, in.Summarized = 128_000, state, false
			d, again := cw.Plan(in)
			p := fits(t, c, in, d, d.Budget.Trigger)
			if want := len(in.History) + 1; len(p.Messages) != want || places(d.History, d.Run)[core.PlaceVerbatim] != want {
				t.Errorf("back on 128K: got %v, want all %d verbatim", places(d.History, d.Run), want)
			}
			if diff := cmp.Diff(state, again); diff != "" || d.Compacted {
				t.Errorf("back on 128K: the state changed, so that the small model's prompt does:\n%s", diff)
			}
		})
	}
}
