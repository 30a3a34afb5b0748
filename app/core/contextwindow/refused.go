package contextwindow

import (
	"slices"

	"bobbin/app/core"
)

// Without returns the decision without the turns before its run whose messages the provider may refuse, by the seqs of
// the users' messages, without notes, instructions and quotations that were made from these, and without the summary,
// unless it is kept.
func (d Decision) Without(mayRefuse func(seq int64) bool, keepsSummary bool) Decision {
	d.LacksSummary = !keepsSummary
	d.AppendsSetup = d.AppendsSetup || d.Frozen != "" // changes of the setup may stand before what is left out
	d.Pinned = slices.DeleteFunc(slices.Clone(d.Pinned), func(s Slot) bool { return mayRefuse(s.Seq) })
	d.Standing = slices.DeleteFunc(slices.Clone(d.Standing), func(i Instruction) bool { return mayRefuse(i.Seq) })
	d.Recalled = slices.DeleteFunc(slices.Clone(d.Recalled), func(p Passage) bool { return mayRefuse(p.Seq) })
	isOut, all := false, d.History
	d.History = nil
	for i, s := range all {
		if s.Role == core.RoleUser || i == 0 {
			isOut = mayRefuse(s.Seq)
		}
		if s.Quotes = nil; !isOut {
			d.History = append(d.History, s)
		}
	}
	return d
}

// HasAny reports whether Without leaves anything out but the summary.
func (d Decision) HasAny(mayRefuse func(seq int64) bool) bool {
	return slices.ContainsFunc(d.Pinned, func(s Slot) bool { return mayRefuse(s.Seq) }) ||
		slices.ContainsFunc(d.Standing, func(i Instruction) bool { return mayRefuse(i.Seq) }) ||
		slices.ContainsFunc(d.Recalled, func(p Passage) bool { return mayRefuse(p.Seq) }) ||
		slices.ContainsFunc(d.History, func(s Slot) bool { return s.Place != core.PlaceLeftOut && mayRefuse(s.Seq) })
}

// HasEarlier reports whether the prompt has anything of what was before its run.
func (s PromptSize) HasEarlier() bool {
	return slices.ContainsFunc(s.Of[SectionSummary:SectionRun], func(n int) bool { return n > 0 })
}
