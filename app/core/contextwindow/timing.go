package contextwindow

import (
	"slices"

	"bobbin/app/core"
)

// When a summary is made after a trigger fires:
//
//	inline      before the call that crosses the trigger
//	after_run   after the run, and before the next one if that failed
//	background  ahead: prepared near the trigger and activated above it
//
// Whatever the timing, a prompt that would not fit is compacted before it is sent, and a
// prepared summary is activated when a trigger is crossed, never before.

// nearShare is the part of a trigger from which a summary is prepared.
const nearShare = 0.85

// growth is how much will be added until a trigger is crossed.
type growth struct {
	prompt int  // tokens of the prompt
	since  int  // tokens since the cursor
	early  bool // the plan is for that time
}

// arrangeSummary decides what happens to the summary that the triggers ask for; false = it gains nothing.
func (p *planner) arrangeSummary(f firedTriggers) bool {
	if v := p.readyVersion(); v.Version > 0 && !p.in.Force {
		p.decision.Activate = &Activation{SummaryVersion: v, Trigger: f.triggerName(false)}
		return true
	}
	order := p.summaryOrder(f)
	if order == nil {
		return false
	}
	order.Strict = !p.in.Force && (p.in.Phase == AfterRun || p.in.Policy.Timing != TimingInline && !f.hard) // else a summary without a model is better than none
	if !p.needsSummaryNow(f) {
		// The summary is made beside it, or later.
		p.resetPlan()
		switch {
		case p.in.Resting:
			p.addReason("summaries are paused: their model failed too often")
		case p.in.Busy:
			p.addReason("the oldest messages are being summarized in the background")
		case p.in.Policy.Timing == TimingBackground:
			order.Strict = true
			p.decision.Prepare = order
			p.addReason("the oldest messages will be summarized in the background")
		default:
			p.addReason("the oldest messages will be summarized after the run")
		}
		if p.in.Summarized {
			// The landing is not recorded: the trigger stays crossed until it has landed.
			p.cleanState()
			p.decision.Compacted = true
			p.addReason("landed at %d tokens, above the landing point of %d: more will be summarized", p.total, p.budget.Landing)
		} else {
			p.keepCut()
		}
		return true
	}
	p.orderNow(order)
	return true
}

// isForSending reports whether a prompt is about to be sent, or a summary was just made.
func (p *planner) isForSending() bool {
	return p.in.Phase == BeforeCall || p.in.Summarized || p.in.Force
}

// needsSummaryNow reports whether the summary is made before anything else happens.
func (p *planner) needsSummaryNow(f firedTriggers) bool {
	switch timing := p.in.Policy.Timing; {
	case p.in.Force:
		return true
	case p.in.Phase == AfterRun:
		return timing == TimingAfterRun && !p.in.Resting
	case f.hard:
		return true
	case p.in.Resting:
		return false
	case f.of[triggerUnsummarized]:
		return timing == TimingInline || len(p.in.Run) <= 1
	case timing == TimingAfterRun:
		// The last run's summary failed, or messages were imported. The share trigger is
		// crossed by this run's own message.
		return f.bySince() && len(p.in.Run) <= 1 && !p.in.Busy
	default:
		return timing != TimingBackground
	}
}

// resetPlan discards what the plan has decided.
func (p *planner) resetPlan() {
	p.state, p.decision.Rungs, p.decision.Reasons, p.isReduced = p.in.initialState(), nil, nil, false
	p.placeMessages()
}

// prepareAhead orders the summary for the next trigger to be crossed, if one is near, and reports whether it is ready.
func (p *planner) prepareAhead() (ready bool) {
	policy := p.in.Policy
	near := selectTriggers(p.limits, trigger.isNear)
	if policy.Timing != TimingBackground || p.in.Busy || p.in.Resting || p.in.NoSummary || !near.anyFired() {
		return false
	}
	q := newPlanner(p.in)
	q.ahead, q.isReduced = growth{early: true}, true
	if near.of[triggerShare] {
		q.ahead.prompt = max(p.shareThreshold()-p.total, 0)
	}
	if near.of[triggerTokens] {
		q.ahead.since = max(policy.MaxTokens-p.sinceCursor(), 0)
	}
	q.placeMessages()
	if near.of[triggerShare] {
		q.maskHistory()
		if q.total <= q.budget.Landing && !near.bySince() {
			return false // masking old tool results will be enough
		}
	}
	if v := q.readyVersion(); v.Version > 0 {
		return true
	}
	if order := q.summaryOrder(near); order != nil {
		order.Strict = true
		p.decision.Prepare = order
	}
	return false
}

// The versions of a summary form a chain: each covers more than the one before it. A
// prompt takes the oldest version with which it is below the triggers of its model, so
// that a smaller model, which needed a later version, costs the others no detail: a larger
// model goes back to an earlier version (OlderVersion), and takes a later one when its own
// trigger is crossed (planner.readyVersion). Neither calls a model.

// largerBy is how much larger a model's trigger must be for a version made for another model
// to count as made for a smaller one. Estimates of one model vary less.
const largerBy = 1.25

// triggerSize returns above which size the prompts are summarized, in cl100k_base tokens.
func (p *planner) triggerSize() int { return p.scale.toBase(min(p.budget.Trigger, p.limit)) }

// madeForSmaller reports whether madeFor is the trigger of a smaller model; 0 = made for every model.
func (p *planner) madeForSmaller(madeFor int) bool {
	return madeFor > 0 && largerBy*float64(madeFor) <= float64(p.triggerSize())
}

// MayUseOlder reports whether an older version may be enough, as this one was made for a smaller model.
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

// staysQuiet reports whether no trigger fires at the size, with so many messages and tokens after the cursor.
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
