package contextwindow

import (
	"math"
	"slices"

	"bobbin/app/core"
)

// minMaskGain is the part of what is needed that masking must free to be worth
// changing the prompt's bytes (CONTEXT § 4, rung 1).
const minMaskGain = 0.2

// compact climbs the ladder of CONTEXT § 4 until the prompt is small enough.
func (p *planner) compact(f fired) {
	over := f.byTokens() || p.in.Summarized && p.total > p.shareThreshold()
	if over {
		p.maskHistory()
		if p.total <= p.b.Landing && !f.bySince() && !p.in.Force {
			p.settleIfSent()
			return
		}
	}
	if p.maySummarize(f) && p.arrange(f) {
		return
	}
	if !p.sends() {
		p.begin()
		return
	}
	if over {
		if order := p.loopOrder(triggerLoopTokens); order != nil {
			p.ask(order)
			return
		}
	}
	if !over && p.total <= p.limit {
		p.settleIfChanged()
		return
	}
	p.wholeUser()
	p.cutSummary(p.b.SummaryLimit)
	if p.total > p.limit {
		p.fitHistory()
	}
	if p.total > p.limit {
		p.fitRun()
	}
	if p.total > p.limit {
		p.floor()
		return
	}
	p.settle()
}

// ask ends the plan with an order.
func (p *planner) ask(o *Order) {
	p.d.Summarize = o
	p.rung(o.Rung)
}

// settleIfSent records a landing, if a prompt is about to be sent: otherwise the
// next one is made small enough when it is.
func (p *planner) settleIfSent() {
	if !p.sends() {
		p.begin()
		return
	}
	p.settle()
}

// settleIfChanged records a landing only when something was compacted: a
// trigger that found nothing to do leaves the state as it is.
func (p *planner) settleIfChanged() {
	if p.in.Summarized {
		p.settle()
		return
	}
	p.reason("there is nothing to summarize yet")
}

// maskHistory is rung 1: old tool results of the history become markers, all but
// those of the newest atom.
func (p *planner) maskHistory() { p.mask(p.maskableThrough()) }

// mask masks the tool results up to a seq, if that frees enough to be worth it.
func (p *planner) mask(through int64) {
	gain := 0
	for _, s := range slices.Concat(p.history, p.run) {
		if s.Seq <= through && s.Role == core.RoleTool {
			gain += p.maskGain(s)
		}
	}
	if gain == 0 || float64(gain) < minMaskGain*float64(p.total-p.b.Landing) {
		return
	}
	p.rung(1)
	p.reason("%d tokens of old tool results are masked", gain)
	p.state.MaskedThrough = max(p.state.MaskedThrough, through)
	p.place()
}

// maskGain returns what masking the tool result frees.
func (p *planner) maskGain(s Slot) int {
	if s.Pinned || s.Tokens <= maskTokens || s.Place == core.PlaceMasked || s.Place == core.PlaceLeftOut || s.Place == core.PlaceCovered {
		return 0
	}
	return s.Size - p.r.of(maskTokens)
}

// maskableThrough returns the seq of the last message of the history before its
// newest tool atom, or of all of it when the run in progress has one of its own.
func (p *planner) maskableThrough() int64 {
	if slices.ContainsFunc(p.run, func(s Slot) bool { return s.Role == core.RoleTool }) {
		if n := len(p.history); n > 0 {
			return p.history[n-1].Seq
		}
	}
	for i := len(p.history) - 1; i >= 0; i-- {
		if len(p.history[i].Calls) > 0 {
			return p.history[i].Seq - 1
		}
	}
	return 0
}

// maySummarize reports whether the policy lets rungs 2 and 3 be climbed.
func (p *planner) maySummarize(f fired) bool {
	if p.in.NoSummary {
		return false
	}
	if p.in.Force || f.unsummarized {
		return true
	}
	return p.in.Policy.summarizes() && (f.any() || p.in.Summarized && p.total > p.shareThreshold())
}

// order is rungs 2 and 3: which of the oldest messages the summary takes over;
// nil when there is nothing worth it. Of several triggers the one that cuts most
// decides.
func (p *planner) order(f fired) *Order {
	cut, rung := 0, 2
	deeper := func(c, r int) {
		if r == 3 && p.ahead.early { // more will have been said when it is used
			c, r = p.cutKeeping(p.in.Policy.MinRecent), 2
		}
		if c > cut {
			cut, rung = c, r
		}
	}
	if f.messages || f.unsummarized {
		deeper(p.cutKeeping(p.in.Policy.MinRecent), 2)
	}
	if f.tokens {
		deeper(p.cutUntil(p.sinceCursor()+p.ahead.since, share(p.in.Policy.LandAt, p.in.Policy.MaxTokens), p.rawGain))
	}
	if f.byTokens() {
		deeper(p.cutUntil(p.withSummary(), p.b.Landing, p.coveredGain))
	}
	if p.in.Force && cut == 0 {
		cut = p.forcedCut()
	}
	if cut == 0 || p.bursts(cut) {
		return nil
	}
	return p.orderThrough(cut, rung, f)
}

// bursts reports whether the prompt would not fit with the first cut messages
// covered, and not be smaller either: pinned messages cost more as notes.
func (p *planner) bursts(cut int) bool {
	_, limit := p.takeOver(cut)
	size := p.total - p.summarySize() + p.r.of(limit+summaryWrap)
	for i := range cut {
		size -= p.coveredGain(i)
	}
	return size > p.limit && size >= p.total
}

// takeOver returns how many cl100k_base tokens a summary of the first cut messages
// would take over, and how many it may have.
func (p *planner) takeOver(cut int) (added, limit int) {
	for _, s := range p.history[:cut] {
		added += s.weight()
	}
	return added, max(min(p.r.back(p.b.SummaryLimit), p.in.Summary.Tokens+added/2), 1)
}

// orderThrough returns the order for the first cut messages of the history.
func (p *planner) orderThrough(cut, rung int, f fired) *Order {
	added, limit := p.takeOver(cut)
	if added < worthSummarizing && !p.in.Force {
		return nil
	}
	if rung == 3 {
		p.reason("fewer than %d recent messages are kept: more do not fit", p.in.Policy.MinRecent)
	}
	first, last := p.in.History[0], p.in.History[cut-1]
	return &Order{
		Kind: core.SummaryRolling, FromID: first.ID, FromSeq: first.Seq, ThroughID: last.ID, ThroughSeq: last.Seq,
		Messages: cut, Tokens: p.in.Summary.Tokens + added, Limit: limit, AskFor: min(p.in.Policy.SummaryAskTokens, limit),
		Trigger: f.name(p.in.Force), Rung: rung,
	}
}

// cuts returns after how many messages the history may be cut: the rest begins
// with a user's message, so no atom is split.
func (p *planner) cuts() []int {
	var cuts []int
	for i, it := range p.in.History {
		if i > 0 && it.Role == core.RoleUser {
			cuts = append(cuts, i)
		}
	}
	if n := len(p.in.History); n > 0 && len(p.in.Run) > 0 {
		cuts = append(cuts, n)
	}
	return cuts
}

// cutKeeping returns the latest cut that leaves at least keep messages; 0 = none.
func (p *planner) cutKeeping(keep int) int {
	best := 0
	for _, c := range p.cuts() {
		if len(p.in.History)-c >= keep {
			best = c
		}
	}
	return best
}

// forcedCut returns the cut for a summary that the user asked for: keep the
// policy's recent messages if that leaves anything to summarize, else the last turn.
func (p *planner) forcedCut() int {
	if c := p.cutKeeping(max(p.in.Policy.MinRecent, 1)); c > 0 {
		return c
	}
	return p.cutKeeping(1)
}

// cutUntil returns the earliest cut that brings size down to most, where covering
// message i frees gain(i); if none does, the one that brings it lowest. It is on
// rung 2 with the recent messages kept, else on rung 3.
func (p *planner) cutUntil(size, most int, gain func(i int) int) (cut, rung int) {
	least, next := math.MaxInt, 0
	for _, c := range p.cuts() {
		for ; next < c; next++ {
			size -= gain(next)
		}
		if size < least {
			cut, least = c, size
		}
		if size <= most {
			break
		}
	}
	if len(p.in.History)-cut >= p.in.Policy.MinRecent {
		return cut, 2
	}
	return cut, 3
}

// sinceCursor returns the tokens since the cursor.
func (p *planner) sinceCursor() int {
	size := 0
	for i := range p.in.History {
		size += p.rawGain(i)
	}
	return size
}

// rawGain returns what covering message i takes from the tokens since the cursor.
func (p *planner) rawGain(i int) int { return p.r.of(p.history[i].weight()) }

// withSummary returns how large the prompt is with a summary of the largest size.
func (p *planner) withSummary() int {
	return p.total - p.summarySize() + p.b.SummaryLimit + p.r.of(summaryWrap)
}

// coveredGain returns what covering message i frees in the prompt. A pinned one
// stays there, as a note.
func (p *planner) coveredGain(i int) int {
	switch s := p.history[i]; {
	case s.Place == core.PlaceCovered:
		return s.Size
	case s.Note:
		return 0
	case s.Pinned:
		return s.Size - p.r.of(s.Tokens+pinnedLine) - p.r.of(pinnedWrap)
	default:
		return s.Size
	}
}

// cutSummary is rung 4: a summary over its share is shown without its oldest
// content, in the prompt only. What an earlier compaction cut is judged anew.
func (p *planner) cutSummary(most int) {
	if p.state.SummaryCut > 0 {
		p.state.SummaryCut = 0
		p.sum()
	}
	if p.in.Summary.Version == 0 || p.summarySize()-p.r.of(summaryWrap) <= most {
		return
	}
	p.rung(4)
	p.reason("the summary is shown with %d tokens, its share of this model's window", most)
	p.state.SummaryCut = max(p.r.back(most), 1)
	p.sum()
}
