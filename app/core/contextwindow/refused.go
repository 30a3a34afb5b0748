package contextwindow

import (
	"slices"

	"bobbin/app/core"
)

// Refused is how much of what was said before its run a prompt leaves out, as a filter of the provider
// may have refused it.
type Refused int

// The steps.
const (
	RefusedNothing    Refused = iota
	RefusedUnanswered         // the turns that were never answered, or by a half answer that a filter cut off
	RefusedAll                // all turns, and what was made from them: summary, pinned notes, standing instructions, passages
)

// LeaveOut returns the decision without what may have been refused.
func (d Decision) LeaveOut(r Refused) Decision {
	if d.Refused = r; r == RefusedNothing {
		return d
	}
	if r == RefusedAll {
		d.Pinned, d.Standing, d.Recalled = nil, nil, nil
	}
	d.AppendsSetup = d.AppendsSetup || d.Frozen != "" // changes of the setup may stand before what is left out
	d.History = slices.Clone(d.History)
	begin := 0 // of a turn
	for i, s := range d.History {
		if i+1 < len(d.History) && d.History[i+1].Role != core.RoleUser {
			continue
		}
		for ; begin <= i; begin++ {
			if r == RefusedAll || s.Role != core.RoleAssistant || len(s.Calls) > 0 || s.Filtered {
				d.History[begin].Place = core.PlaceLeftOut
			}
		}
	}
	return d
}

// NextRefused returns what the next prompt leaves out after a filter refused that of the decision, of the
// size; RefusedNothing = there is no more to leave out.
func (d Decision) NextRefused(sent PromptSize) Refused {
	isLeftOut := func(s Slot) bool { return s.Place == core.PlaceLeftOut }
	unanswered := d.LeaveOut(RefusedUnanswered).History
	for i, s := range d.History {
		if d.Refused == RefusedNothing && isLeftOut(unanswered[i]) && !isLeftOut(s) {
			return RefusedUnanswered
		}
	}
	if d.Refused < RefusedAll && slices.ContainsFunc(sent.Of[SectionSummary:SectionRun], func(n int) bool { return n > 0 }) {
		return RefusedAll
	}
	return RefusedNothing
}
