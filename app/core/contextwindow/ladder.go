package contextwindow

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"bobbin/app/core"
)

// minMaskGain is the part of what is needed that masking must free to justify other bytes (rung 1).
const minMaskGain = 0.2

// climbLadder climbs the ladder until the prompt is small enough.
func (p *planner) climbLadder(f firedTriggers) {
	p.isReduced = true
	p.sumSections()
	over := f.byTokens() || p.in.Summarized && p.total > p.shareThreshold()
	if over && p.withoutQuotesEnough(f) {
		return
	}
	if over {
		p.maskHistory()
		if p.total <= p.budget.Landing && !f.bySince() && !p.in.Force {
			p.landIfSent()
			return
		}
	}
	if p.maySummarize(f) && p.arrangeSummary(f) {
		return
	}
	if !p.isForSending() {
		p.resetPlan()
		return
	}
	if over {
		if order := p.loopOrder(triggerLoopTokens); order != nil {
			p.orderNow(order)
			return
		}
	}
	if !over && p.total <= p.limit {
		if p.in.Summarized {
			p.recordLanding()
		} else if p.in.Once == "" { // the trigger leaves the state as it is
			p.addReason("there is nothing to summarize yet")
		}
		return
	}
	p.dropQuotes()
	// Each compaction decides again about the user's message and the standing instructions (invariant 5).
	if p.state.StandingOut {
		p.state.StandingOut = false
		p.placeMessages()
	}
	if len(p.run) > 0 && p.run[0].Place == core.PlaceShortened {
		p.state.Shortened = maps.Clone(p.state.Shortened)
		delete(p.state.Shortened, p.run[0].ID)
		p.placeMessages()
	}
	p.cutSummary(p.budget.SummaryLimit)
	if p.total > p.fitLimit() {
		p.giveUpNative()
	}
	if p.in.Once != "" && p.keepCut() || p.total > p.fitLimit() {
		p.fitHistory()
	}
	if p.total > p.limit {
		p.fitRun()
	}
	if p.total > p.limit {
		p.refusePrompt()
		return
	}
	p.recordLanding()
}

// orderNow ends the plan with an order.
func (p *planner) orderNow(o *Order) {
	p.decision.Summarize = o
	p.addRung(o.Rung)
}

// landIfSent records a landing if a prompt is about to be sent: else the next one is shrunk when it is.
func (p *planner) landIfSent() {
	if !p.isForSending() {
		p.resetPlan()
		return
	}
	p.recordLanding()
}

// maskHistory is rung 1: markers replace old tool results of the history, except those of its
// newest tool atom where the run in progress has none of its own.
func (p *planner) maskHistory() {
	inRun := slices.ContainsFunc(p.run, func(s Slot) bool { return s.Role == core.RoleTool })
	for _, s := range slices.Backward(p.history) {
		if inRun {
			p.maskThrough(s.Seq)
			return
		}
		if len(s.Calls) > 0 {
			p.maskThrough(s.Seq - 1)
			return
		}
	}
}

// maskThrough masks the tool results up to a seq if that frees enough.
func (p *planner) maskThrough(through int64) {
	gain := 0
	for _, s := range p.slots {
		if s.Seq > through || s.Role != core.RoleTool || s.Pinned || s.Tokens <= maskTokens || s.Place == core.PlaceMasked || s.Place == core.PlaceLeftOut || s.Place == core.PlaceCovered {
			continue
		}
		gain += s.Size - p.scale.toModel(maskTokens)
	}
	if gain == 0 || float64(gain) < minMaskGain*float64(p.total-p.budget.Landing) {
		return
	}
	p.addRung(1)
	p.addReason("%d tokens of old tool results are masked", gain)
	p.state.MaskedThrough = max(p.state.MaskedThrough, through)
	p.placeMessages()
}

// maySummarize reports whether the policy allows rungs 2 and 3: one without triggers never does (invariant 8).
func (p *planner) maySummarize(f firedTriggers) bool {
	if p.in.NoSummary {
		return false
	}
	if p.in.Force || f.of[triggerUnsummarized] {
		return true
	}
	policy := p.in.Policy
	hasTrigger := policy.UsageThreshold > 0 || policy.MaxTokens > 0 || policy.messageThreshold() > 0 || policy.MaxUnsummarized > 0
	return policy.AutoSummarize && hasTrigger && (f.anyFired() || p.in.Summarized && p.total > p.shareThreshold())
}

// summaryOrder is rungs 2 and 3: which of the oldest messages the summary takes over; nil when it gains nothing. Of
// several triggers the one with the deepest cut decides.
func (p *planner) summaryOrder(f firedTriggers) *Order {
	cut, rung, madeFor := 0, 2, 0
	deeper := func(c, r int) {
		if r == 3 && p.ahead.early { // there will be more messages when it is used
			c, r = p.cutKeeping(p.in.Policy.MinRecent), 2
		}
		if c > cut {
			cut, rung = c, r
		}
	}
	if f.of[triggerMessages] || f.of[triggerUnsummarized] {
		deeper(p.cutKeeping(p.in.Policy.MinRecent), 2)
	}
	if f.of[triggerTokens] {
		deeper(p.cutUntil(p.sinceCursor()+p.ahead.since, shareOf(p.in.Policy.LandAt, p.in.Policy.MaxTokens), p.rawGain))
	}
	if f.byTokens() {
		others := cut
		deeper(p.cutUntil(p.total-p.summarySize()+p.budget.SummaryLimit+p.scale.toModel(summaryWrap), p.budget.Landing, p.removalGain))
		if cut > others && !p.in.Force { // a larger model would cut less
			madeFor = p.triggerSize()
		}
	}
	if p.in.Force && cut == 0 {
		cut = cmp.Or(p.cutKeeping(max(p.in.Policy.MinRecent, 1)), p.cutKeeping(1)) // the recent messages, else the last turn
	}
	if cut == 0 || p.coverOverflows(cut) {
		return nil
	}
	whole := cut
	if cut = p.cutOneCall(whole); cut < whole {
		p.addReason("the oldest %d of %d messages are summarized first: one call takes no more", cut, whole)
		rung = 2
	}
	added, limit := p.takeOver(cut)
	if added < worthSummarizing && !p.in.Force {
		return nil
	}
	if rung == 3 {
		p.addReason("fewer than %d recent messages are kept: more do not fit", p.in.Policy.MinRecent)
	}
	first, last := p.in.History[0], p.in.History[cut-1]
	return &Order{
		Kind: core.SummaryRolling, FromID: first.ID, FromSeq: first.Seq, ThroughID: last.ID, ThroughSeq: last.Seq, OrderedSeq: p.in.History[whole-1].Seq,
		Messages: cut, Tokens: p.in.Summary.Tokens + added, Limit: limit, AskFor: min(p.in.Policy.SummaryAskTokens, limit),
		Trigger: f.triggerName(p.in.Force), Rung: rung, MadeFor: madeFor,
	}
}

// cutOneCall returns the latest cut, at most max, up to which the messages fit one call of
// the summary model; the earliest cut if none does.
func (p *planner) cutOneCall(maxCut int) int {
	if p.in.OrderLimit <= 0 {
		return maxCut
	}
	best, size, added, next, enough := 0, 0, 0, 0, false
	for _, c := range p.cutPoints() {
		for ; next < c; next++ {
			it := p.in.History[next]
			tokens := it.asText() + it.Unsaid
			if it.Role == core.RoleTool {
				tokens = min(it.Tokens, resultMaterial)
			}
			size += tokens + lineMaterial
			added += p.history[next].sourceTokens()
		}
		if c > maxCut || enough && size > p.in.OrderLimit {
			break
		}
		best, enough = c, added >= worthSummarizing
	}
	return best
}

// coverOverflows reports whether the prompt would not fit with the first cut messages
// covered, and would not be smaller either: pinned messages cost more as notes.
func (p *planner) coverOverflows(cut int) bool {
	_, limit := p.takeOver(cut)
	size := p.total - p.summarySize() + p.scale.toModel(limit+summaryWrap)
	for _, s := range p.history[:cut] {
		size -= p.removalGain(s)
	}
	return size > p.limit && size >= p.total
}

// takeOver returns the cl100k_base tokens that a summary of the first cut messages takes over, and its limit.
func (p *planner) takeOver(cut int) (added, limit int) {
	for _, s := range p.history[:cut] {
		added += s.sourceTokens()
	}
	return added, max(min(p.scale.toBase(p.budget.SummaryLimit), p.in.Summary.Tokens+added/2), 1)
}

// cutPoints returns after how many messages the history may be cut: the rest begins with a
// user's message, so no atom is split.
func (p *planner) cutPoints() []int {
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

// cutKeeping returns the latest cut that keeps at least keep messages; 0 = none.
func (p *planner) cutKeeping(keep int) int {
	best := 0
	for _, c := range p.cutPoints() {
		if len(p.in.History)-c >= keep {
			best = c
		}
	}
	return best
}

// cutUntil returns the earliest cut that brings size down to target, where covering a message frees its gain, else the
// one that brings it lowest. The rung is 2 if that keeps the recent messages, else 3.
func (p *planner) cutUntil(size, target int, gain func(Slot) int) (cut, rung int) {
	smallest, next := math.MaxInt, 0
	for _, c := range p.cutPoints() {
		for ; next < c; next++ {
			size -= gain(p.history[next])
		}
		if size < smallest {
			cut, smallest = c, size
		}
		if size <= target {
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
	for _, s := range p.history {
		size += p.rawGain(s)
	}
	return size
}

// rawGain returns what covering the message takes from the tokens since the cursor.
func (p *planner) rawGain(s Slot) int { return p.scale.toModel(s.sourceTokens()) }

// removalGain returns what the prompt loses without the message in its place. A pinned message then
// moves to the notes, where it costs more.
func (p *planner) removalGain(s Slot) int {
	switch {
	case s.Place == core.PlaceLeftOut:
		return 0
	case s.Pinned && s.Place != core.PlaceCovered:
		return s.Size - p.scale.toModel(s.asText()+pinnedLine) - p.scale.toModel(pinnedWrap)
	default:
		return s.Size
	}
}

// cutSummary is rung 4: the prompt shows a summary that exceeds its share without its oldest
// content. It decides again about what an earlier compaction cut.
func (p *planner) cutSummary(limit int) {
	if p.state.SummaryCut > 0 {
		p.state.SummaryCut = 0
		p.placeMessages()
	}
	if p.in.Summary.Version == 0 || p.summarySize()-p.scale.toModel(summaryWrap) <= limit {
		return
	}
	p.addRung(4)
	p.addReason("the summary is shown with %d tokens, its share of this model's window", limit)
	p.state.SummaryCut = max(p.scale.toBase(limit), 1)
	p.placeMessages()
}
