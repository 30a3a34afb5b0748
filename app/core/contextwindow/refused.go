package contextwindow

import (
	"slices"

	"bobbin/app/core"
)

// Without returns the decision without the messages before its run that the provider may refuse, by their seqs, without
// notes, instructions and quotations that were made from these, and without the summary, unless it is kept. Found reports whether
// the prompt had any of them.
func (d Decision) Without(mayRefuse func(seq int64) bool, keepsSummary bool) (_ Decision, found bool) {
	isOut := func(seq int64, isSent bool) bool { is := mayRefuse(seq); found = found || is && isSent; return is }
	d.LacksSummary = !keepsSummary
	d.AppendsSetup = d.AppendsSetup || d.Frozen != "" // changes of the setup may stand before what is left out
	d.Pinned = slices.DeleteFunc(slices.Clone(d.Pinned), func(s Slot) bool { return isOut(s.Seq, true) })
	d.Standing = slices.DeleteFunc(slices.Clone(d.Standing), func(i Instruction) bool { return isOut(i.Seq, true) })
	d.Recalled = slices.DeleteFunc(slices.Clone(d.Recalled), func(p Passage) bool { return isOut(p.Seq, true) })
	d.History = slices.DeleteFunc(slices.Clone(d.History), func(s Slot) bool { return isOut(s.Seq, s.Place != core.PlaceLeftOut) })
	for i := range d.History {
		d.History[i].Quotes = nil
	}
	return d, found
}
