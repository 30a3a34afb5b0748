package contextwindow

import (
	"cmp"
	"slices"
	"sort"

	"bobbin/app/core"
)

// The harsh rungs cut in large steps, so that a prompt that was cut once is not cut again
// at the next message.
const (
	historyShare  = 8   // a message of the history gets at limit 1/8 of the landing point
	minRunMessage = 512 // cl100k_base tokens: messages of the run are shortened further only if leaving out others did not help
	minSummaryCut = 16  // cl100k_base tokens: the summary is cut so far before the user's own message is shortened
)

// fitHistory shortens (rung 6), then leaves out (rung 7) the oldest messages of the history
// until the prompt is at its target or the history is gone.
func (p *planner) fitHistory() {
	target := p.historyTarget()
	limit := p.scale.toBase(max(p.budget.Landing/historyShare, 1))
	var large []Slot
	for _, s := range p.history {
		if p.shorteningGain(s, limit) > 0 {
			large = append(large, s)
		}
	}
	slices.SortStableFunc(large, func(a, b Slot) int { return cmp.Compare(b.Size, a.Size) })
	size, n := p.total, 0
	for n < len(large) && size > target {
		size -= p.shorteningGain(large[n], limit)
		n++
	}
	p.shortenSlots(large[:n], limit)
	p.leaveOutHistory(target)
}

// keepCut leaves out what the last prompt that did not wait for a summary left out, while the summary is due: the cut
// moves only forward, whatever the factor of the counts. It reports whether the prompt leaves anything out.
func (p *planner) keepCut() bool {
	c := p.state.Cut
	if c != nil && c.Window == p.budget.Window && p.total > p.budget.Trigger && len(p.history) > 0 && c.Seq >= p.history[0].Seq {
		p.addRung(7)
		p.state.LeftOut = withRange(p.state.LeftOut, SeqRange{p.history[0].Seq, c.Seq})
		p.placeMessages()
	}
	return p.anyLeftOut()
}

// historyTarget returns the size to which the history is cut: the landing point. A plan for one
// prompt only fills the window up to the trigger, in steps of what a new compaction requires:
// as the conversation grows, the cut stays where it is until the next step.
func (p *planner) historyTarget() int {
	if p.in.Once == "" {
		return p.budget.Landing
	}
	over, step := p.total-min(p.budget.Trigger, p.limit), max(shareOf(resetShare, p.budget.Trigger), 1)
	return p.total - (over+step-1)/step*step
}

// leaveOutHistory is rung 7 for the history. Between runs the newest turn stays if it fits.
func (p *planner) leaveOutHistory(target int) {
	if p.leaveOut(p.history, 0, p.cutPoints(), target) && p.in.Once == "" {
		p.addReason("the oldest messages are left out of the prompt: they do not fit")
	}
	if p.total > p.limit && len(p.run) == 0 {
		p.leaveOut(p.history, 0, []int{len(p.history)}, target)
	}
}

// leaveOut leaves out the slots from first up to the earliest of the ends that brings the prompt to target, else up to
// the one that makes it smallest. It reports whether it left anything out.
func (p *planner) leaveOut(slots []Slot, first int, ends []int, target int) bool {
	size := p.total
	if !p.anyLeftOut() {
		size += p.scale.toModel(leftOutMarker)
	}
	best, smallest, next := first, p.total, first
	for _, end := range ends {
		if smallest <= target {
			break
		}
		for ; next < end; next++ {
			size -= p.removalGain(slots[next])
		}
		if size < smallest {
			best, smallest = end, size
		}
	}
	if best == first {
		return false
	}
	p.addRung(7)
	p.state.LeftOut = withRange(p.state.LeftOut, SeqRange{slots[first].Seq, slots[best-1].Seq})
	p.placeMessages()
	return true
}

// fitRun shrinks the run in progress: it masks old tool results, shortens messages, leaves
// out the oldest tool rounds, then shortens the user's message. A user's message that alone
// exceeds the budget is shortened first.
func (p *planner) fitRun() {
	steps := []func(){
		p.shareWithUser,
		p.maskRun,
		func() { p.levelRun(p.budget.Landing, minRunMessage) },
		func() { p.levelRun(p.limit, minRunMessage) },
		p.leaveOutRun,
		func() { p.leaveOutHistory(p.historyTarget()) }, // the left-out marker is there now
		func() { p.levelRun(p.limit, 0) },
		func() { p.cutSummary(min(p.scale.toModel(minSummaryCut), p.budget.SummaryLimit)) },
		p.giveUpStanding,
		p.shortenUser,
	}
	for _, step := range steps {
		if p.total <= p.limit {
			return
		}
		step()
	}
}

// shareWithUser gives a user's message that alone exceeds the budget half of the room, so
// that the tool rounds of its run have the other half.
func (p *planner) shareWithUser() {
	if len(p.run) < 2 {
		return
	}
	fixed := p.sizes[SectionSystem].Tokens + p.sizes[SectionTools].Tokens + p.sizes[SectionPinned].Tokens
	if p.in.Summary.Version > 0 {
		fixed += p.scale.toModel(minSummaryCut + summaryWrap)
	}
	if fixed+p.standingSection().Tokens+p.scale.toModel(p.run[0].Tokens) > p.limit {
		p.giveUpStanding()
	}
	if fixed+p.scale.toModel(p.run[0].Tokens) > p.limit {
		p.shortenSlots(p.run[:1], p.scale.toBase((p.budget.Landing-fixed)/2))
	}
}

// lastAtom returns where the newest atom of the run begins, which the model has not seen yet.
func (p *planner) lastAtom() int {
	for i := len(p.run) - 1; i > 0; i-- {
		if p.run[i].Role == core.RoleAssistant {
			return i
		}
	}
	return len(p.run)
}

// maskRun is rung 1 for the run in progress.
func (p *planner) maskRun() {
	if last := p.lastAtom(); last < len(p.run) {
		p.maskThrough(p.run[last].Seq - 1)
	}
}

// levelRun is rung 6 for the run in progress: it limits all its messages but the user's to
// the largest common size that brings the prompt to target, if that size is at least floor
// cl100k_base tokens.
func (p *planner) levelRun(target, floor int) {
	if p.total <= p.limit || len(p.run) < 2 {
		return
	}
	fits := func(limit int) bool {
		size := p.total
		for _, s := range p.run[1:] {
			size -= p.shorteningGain(s, limit)
		}
		return size <= target
	}
	high := 0
	for _, s := range p.run[1:] {
		high = max(high, s.Tokens)
	}
	if floor > 0 && !fits(floor) {
		return
	}
	low := floor + sort.Search(high-floor, func(i int) bool { return !fits(floor + i + 1) }) // the largest size that fits
	p.shortenSlots(p.run[1:], low)
}

// shorteningGain returns what shortening the message to limit cl100k_base tokens frees.
func (p *planner) shorteningGain(s Slot, limit int) int {
	if s.Pinned || s.Place != core.PlaceVerbatim && s.Place != core.PlaceShortened {
		return 0
	}
	return max(s.Size-p.scale.toModel(missingTokens*s.Missing)-p.scale.toModel(s.limitTokens(limit)), 0)
}

// limitTokens returns the cl100k_base tokens of the message when it is held to limit, its files as text.
func (s Slot) limitTokens(limit int) int {
	return min(max(limit, min(s.Tokens, minShortened+shortPerCall*len(s.Calls))), s.asText())
}

// shortenSlots is rung 6: it shortens the messages to limit cl100k_base tokens each, where possible.
func (p *planner) shortenSlots(slots []Slot, limit int) {
	short := map[core.MessageID]int{}
	for _, s := range slots {
		if p.shorteningGain(s, limit) == 0 {
			continue
		}
		short[s.ID] = s.limitTokens(limit)
	}
	if len(short) == 0 {
		return
	}
	p.addRung(6)
	for id, tokens := range p.state.Shortened {
		if _, again := short[id]; !again {
			short[id] = tokens
		}
	}
	p.state.Shortened = short
	p.placeMessages()
}

// leaveOutRun is rung 7 for the run in progress: the oldest tool rounds, never the newest.
func (p *planner) leaveOutRun() {
	var ends []int
	for i := 2; i <= p.lastAtom() && i < len(p.run); i++ {
		inside := p.run[i].Loop != "" && p.run[i].Loop == p.run[i-1].Loop // notes go as a whole
		if p.run[i].Role == core.RoleAssistant && !inside {
			ends = append(ends, i)
		}
	}
	if p.leaveOut(p.run, 1, ends, p.budget.Landing) {
		p.addReason("the oldest tool rounds of this run are left out of the prompt: they do not fit")
	}
}

// shortenUser is the last step of rung 6: the user's message alone exceeds the budget.
func (p *planner) shortenUser() {
	if len(p.run) == 0 {
		return
	}
	u := p.run[0]
	p.shortenSlots(p.run[:1], p.scale.toBase(p.limit-(p.total-u.Size)))
}

// refusePrompt is rung 8: nothing can be sent.
func (p *planner) refusePrompt() {
	p.addRung(8)
	pinned, message := 0, 0
	for _, s := range slices.Concat(p.pinned, p.slots) {
		switch {
		case s.Place == core.PlaceLeftOut: // not in the prompt, or counted as a note
		case s.Pinned:
			pinned += s.Size
		default:
			message += s.Size
		}
	}
	parts := []core.ContextPart{
		{Name: "system prompt", Tokens: p.scale.toModel(p.in.System)}, {Name: "tool definitions", Tokens: p.scale.toModel(p.in.Tools)},
		{Name: "pinned messages", Tokens: pinned}, {Name: "message", Tokens: message},
	}
	culprit := slices.MaxFunc(parts, func(a, b core.ContextPart) int { return cmp.Compare(a.Tokens, b.Tokens) })
	p.decision.Floor = &FloorError{Culprit: culprit.Name, Floor: p.total, Usable: p.limit}
	p.addReason("%s", p.decision.Floor.Error())
}
