package contextwindow

import (
	"slices"

	"bobbin/app/core"
)

// WithoutEarlier returns the decision without all that was said before its run, and what was made from
// it: a filter of the provider refused its prompt.
func (d Decision) WithoutEarlier() Decision {
	d.IsAlone, d.AppendsSetup = true, d.AppendsSetup || d.Frozen != "" // changes of the setup may stand before what is left out
	d.Pinned, d.Standing, d.Recalled = nil, nil, nil
	d.History = slices.Clone(d.History)
	for i := range d.History {
		d.History[i].Place = core.PlaceLeftOut
	}
	return d
}

// HasEarlier reports whether the prompt has anything that WithoutEarlier leaves out.
func (s PromptSize) HasEarlier() bool {
	return slices.ContainsFunc(s.Of[SectionSummary:SectionRun], func(n int) bool { return n > 0 })
}
