package contextwindow

import (
	"slices"

	"bobbin/app/core"
)

// The versions of a summary form a chain: each covers more than the one before it. A
// prompt takes the oldest version with which it is below the triggers of its model, so
// that a smaller model, which needed a later version, costs the others no detail: a larger
// model goes back to an earlier version (OlderVersion), and takes a later one when its own
// trigger is crossed (planner.readyVersion). Neither calls a model.

// largerBy is how much larger a model's trigger must be for a version made for another model
// to count as made for a smaller one. Estimates of one model vary less.
const largerBy = 1.25

// triggerSize returns above which size the prompts of the plan are summarized, in
// cl100k_base tokens.
func (p *planner) triggerSize() int { return p.scale.toBase(min(p.budget.Trigger, p.limit)) }

// madeForSmaller reports whether madeFor is the trigger of a smaller model; 0 = made for
// every model.
func (p *planner) madeForSmaller(madeFor int) bool {
	return madeFor > 0 && largerBy*float64(madeFor) <= float64(p.triggerSize())
}

// MayUseOlder reports whether an older version may be enough: the summary in use was made
// for a smaller model.
func MayUseOlder(in Input) bool {
	return in.Summary.MadeFor > 0 && newPlanner(in).madeForSmaller(in.Summary.MadeFor)
}

// OlderVersion returns the oldest version of the chain, in the order of
// repositories.Summaries.Versions, with which the prompt is below all triggers; the zero
// version, no summary, is a candidate unless a version is valid for every model. It returns
// the version in use if no older one is enough.
func OlderVersion(in Input, chain []core.SummaryVersion) core.SummaryVersion {
	active := in.Summary
	in.State = PromptState{Loops: in.State.Loops} // what was cut for the smaller model is not cut
	p := newPlanner(in)
	p.placeMessages()
	candidates := []core.SummaryVersion{{}}
	for _, v := range chain {
		switch {
		case v.ThroughSeq >= active.ThroughSeq:
		case v.MadeFor == 0:
			candidates = []core.SummaryVersion{v}
		default:
			candidates = append(candidates, v)
		}
	}
	for _, v := range candidates {
		messages, covered := active.Messages-v.Messages, p.scale.toModel(active.Covered-v.Covered)
		size := p.total - p.summarySize() + p.sizeOf(v) + covered + messages // a message's size is rounded up
		if p.staysQuiet(size, len(in.History)+messages, p.sinceCursor()+covered) {
			return v
		}
	}
	return active
}

// staysQuiet reports whether no trigger fires for a prompt of the size with that many
// messages and tokens after the cursor.
func (p *planner) staysQuiet(size, messages, tokens int) bool {
	return size <= min(p.budget.Trigger, p.limit) &&
		!slices.ContainsFunc(p.triggersAt(size, messages, tokens), func(t trigger) bool { return t.Fires })
}

// sizeOf returns the tokens of a summary in the prompt, with the text around it.
func (p *planner) sizeOf(v core.SummaryVersion) int {
	if v.Version == 0 {
		return 0
	}
	return p.scale.toModel(v.Tokens + summaryWrap)
}

// readyVersion returns the version to activate now that triggers are crossed: the oldest with which none
// is; else the one that comes nearest, which the next summary then extends; the zero version = none.
func (p *planner) readyVersion() (best core.SummaryVersion) {
	cuts, next := p.cutPoints(), 0
	size, tokens := p.total-p.summarySize(), p.sinceCursor()
	for _, v := range p.in.Versions {
		i := slices.IndexFunc(cuts, func(c int) bool { return p.in.History[c-1].Seq == v.ThroughSeq })
		if i < 0 {
			continue
		}
		cut := cuts[i]
		for ; next < cut; next++ {
			size, tokens = size-p.removalGain(p.history[next]), tokens-p.rawGain(p.history[next])
		}
		with, left := size+p.sizeOf(v), len(p.in.History)-cut
		switch {
		case with >= p.total:
			continue
		case p.staysQuiet(with, left, tokens):
			return v
		}
		best = v
	}
	return best
}
