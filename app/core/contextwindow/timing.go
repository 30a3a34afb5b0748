package contextwindow

import "math"

// When a summary that the triggers ask for is made (CONTEXT § 2, § 8):
//
//	inline      before the call that crosses the trigger
//	after_run   after the run, and before the next one if that did not happen
//	background  ahead: it is prepared near the trigger and activated over it
//
// Whatever the timing, a prompt that would not fit is made to fit at once, and a
// prepared summary is put to use as soon as a trigger is crossed, never before (W5).

// nearShare is the part of a trigger from which on a summary is prepared.
const nearShare = 0.85

// growth is how much more there will be when a trigger is crossed.
type growth struct {
	prompt int  // tokens of the prompt
	since  int  // tokens since the cursor
	early  bool // the plan is for then
}

// arrange decides what becomes of the summary that the triggers ask for. It reports
// false when there is nothing worth one.
func (p *planner) arrange(f fired) bool {
	if p.canActivate() && !p.in.Force {
		p.d.Activate = &Activation{Version: p.in.Prepared.Version, Trigger: f.name(false)}
		return true
	}
	order := p.order(f)
	if order == nil {
		return false
	}
	order.Strict = p.strict(f)
	if !p.now(f) {
		p.leave(order)
		return true
	}
	p.d.Summarize = order
	p.rung(order.Rung)
	return true
}

// sends reports whether the plan is for a prompt that is about to be sent, or what
// a summary that was just made leads to.
func (p *planner) sends() bool { return p.in.Moment == BeforeCall || p.in.Summarized || p.in.Force }

// now reports whether the summary is made before anything else happens.
func (p *planner) now(f fired) bool {
	switch timing := p.in.Policy.Timing; {
	case p.in.Force:
		return true
	case p.in.Moment == AfterRun:
		return timing == TimingAfterRun && !p.in.Resting
	case f.hard:
		return true
	case p.in.Resting:
		return false
	case timing == TimingAfterRun:
		// The last run's summary failed, or messages were imported (R4). What crosses
		// the share trigger is this run's own message.
		return f.bySince() && len(p.in.Run) <= 1 && !p.in.Busy
	default:
		return timing != TimingBackground
	}
}

// strict reports whether no summary is better than one without a model.
func (p *planner) strict(f fired) bool {
	return !p.in.Force && (p.in.Moment == AfterRun || p.in.Policy.Timing != TimingInline && !f.hard)
}

// leave leaves the prompt as it is: the summary is made beside it, or later.
func (p *planner) leave(order *Order) {
	p.begin()
	switch {
	case p.in.Resting:
		p.reason("summaries rest for a while: the model that makes them failed too often")
	case p.in.Busy:
		p.reason("the oldest messages are being summarized in the background")
	case p.in.Policy.Timing == TimingBackground:
		order.Strict = true
		p.d.Prepare = order
		p.reason("the oldest messages are to be summarized in the background")
	default:
		p.reason("the oldest messages are summarized after the run")
	}
	if p.in.Summarized {
		// Where it landed is not recorded: the trigger stays crossed until it has landed.
		p.clean()
		p.d.Compacted = true
		p.reason("landed at %d tokens, above the landing point of %d: more is to be summarized", p.total, p.b.Landing)
	}
}

// begin takes back what the plan has decided so far.
func (p *planner) begin() {
	p.state, p.d.Rungs, p.d.Reasons = p.in.stateNow(), nil, nil
	p.place()
}

// canActivate reports whether the prepared summary can be put to use: it ends where
// the history may be cut, and the prompt is smaller with it.
func (p *planner) canActivate() bool {
	cut := p.preparedCut()
	if cut == 0 {
		return false
	}
	size := p.total - p.summarySize() + p.r.of(p.in.Prepared.Tokens+summaryWrap)
	for i := range cut {
		size -= p.coveredGain(i)
	}
	return size < p.total
}

// preparedCut returns how many messages of the history the prepared summary takes
// over; 0 = there is none, or it does not belong to this history.
func (p *planner) preparedCut() int {
	if p.in.Prepared.Version == 0 {
		return 0
	}
	for _, c := range p.cuts() {
		if p.in.History[c-1].Seq == p.in.Prepared.ThroughSeq {
			return c
		}
	}
	return 0
}

// prepare orders the summary that will be wanted when the next trigger is crossed,
// if one is near.
func (p *planner) prepare() {
	policy := p.in.Policy
	if policy.Timing != TimingBackground || p.in.Busy || p.in.Resting || p.in.NoSummary {
		return
	}
	near := p.nearing()
	if !near.any() {
		return
	}
	q := newPlanner(p.in)
	q.ahead = growth{early: true}
	if near.share {
		q.ahead.prompt = max(p.shareThreshold()-p.total, 0)
	}
	if near.tokens {
		q.ahead.since = max(policy.MaxTokens-p.sinceCursor(), 0)
	}
	q.place()
	if near.share {
		q.maskHistory()
		if q.total <= q.b.Landing && !near.bySince() {
			return // old tool results are masked then, and that is enough
		}
	}
	if order := q.order(near); order != nil && q.betterThanPrepared(*order) {
		order.Strict = true
		p.d.Prepare = order
	}
}

// betterThanPrepared reports whether the order is worth another model call where a
// summary is prepared already: as much more as makes a new compaction worthwhile.
func (p *planner) betterThanPrepared(o Order) bool {
	cut := p.preparedCut()
	if cut == 0 {
		return true
	}
	more := 0
	for i := cut; i < len(p.in.History) && p.in.History[i].Seq <= o.ThroughSeq; i++ {
		more += p.coveredGain(i)
	}
	return more >= share(resetShare, p.b.Trigger)
}

// nearing finds out which triggers will soon be crossed.
func (p *planner) nearing() fired {
	policy, count := p.in.Policy, len(p.in.History)
	allowed := policy.AutoSummarize && count >= policy.NeverBelow
	near := func(value, trigger int) bool {
		return trigger > 0 && value >= int(math.Ceil(nearShare*float64(trigger)))
	}
	return fired{
		share:        p.b.HasShare && p.total > p.nearPoint(),
		messages:     allowed && near(count, policy.messageThreshold()),
		tokens:       allowed && near(p.sinceCursor(), policy.MaxTokens),
		unsummarized: near(count, policy.MaxUnsummarized),
	}
}

// nearPoint returns over which size of the prompt a summary is prepared for the
// share trigger: max(0.85 · trigger, landing + ¼ trigger), and as much further up
// as the trigger is after a compaction that could not land.
func (p *planner) nearPoint() int {
	t := p.b.Trigger
	point := max(share(nearShare, t), p.b.Landing+share(resetShare, t))
	return min(p.shareThreshold()-t+point, p.shareThreshold())
}
