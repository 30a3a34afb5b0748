package contextwindow

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

// arrangeSummary decides what happens to the summary that the triggers ask for. It reports
// false when a summary gains nothing.
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

// isForSending reports whether the plan is for a prompt that is about to be sent, or follows
// a summary that was just made.
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
