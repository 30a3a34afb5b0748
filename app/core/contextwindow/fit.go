package contextwindow

import (
	"cmp"
	"slices"

	"bobbin/app/core"
)

// The harsh rungs work down in steps, so that a prompt that had to be cut once is
// not cut again at the next message.
const (
	historyShare = 8   // a single message of the history gets at most 1/8 of the landing point
	comfortable  = 512 // cl100k_base tokens under which messages of the run are shortened only when leaving out others did not help
	lastSummary  = 16  // cl100k_base tokens of the summary before the user's own message is touched
)

// fitHistory shortens (rung 6), then leaves out (rung 7) the oldest of the
// history until the prompt is at the landing point or the history is gone.
func (p *planner) fitHistory() {
	most := p.r.back(max(p.b.Landing/historyShare, 1))
	var large []Slot
	for _, s := range p.history {
		if p.saving(s, most) > 0 {
			large = append(large, s)
		}
	}
	slices.SortStableFunc(large, func(a, b Slot) int { return cmp.Compare(b.Size, a.Size) })
	size, n := p.total, 0
	for n < len(large) && size > p.b.Landing {
		size -= p.saving(large[n], most)
		n++
	}
	p.shorten(large[:n], most)
	p.leaveOutHistory()
}

// leaveOutHistory is rung 7 for the history: the oldest turns go. Between runs
// the newest turn stays if it fits.
func (p *planner) leaveOutHistory() {
	if p.leaveOut(p.history, 0, p.cuts()) {
		p.reason("the oldest messages are left out of the prompt: they do not fit")
	}
	if p.total > p.limit && len(p.run) == 0 {
		p.leaveOut(p.history, 0, []int{len(p.history)})
	}
}

// leaveOut leaves out the slots from the first on up to the earliest of the ends
// that brings the prompt to the landing point; if none does, up to the one that
// makes it smallest. It reports whether anything was left out.
func (p *planner) leaveOut(slots []Slot, first int, ends []int) bool {
	size := p.total
	if !p.anyLeftOut() {
		size += p.r.of(leftOutMarker)
	}
	best, least, next := first, p.total, first
	for _, end := range ends {
		if least <= p.b.Landing {
			break
		}
		for ; next < end; next++ {
			size -= p.leftOutGain(slots[next])
		}
		if size < least {
			best, least = end, size
		}
	}
	if best == first {
		return false
	}
	p.rung(7)
	p.state = p.state.withLeftOut(slots[first].Seq, slots[best-1].Seq)
	p.place()
	return true
}

// leftOutGain returns what leaving out the message frees: a pinned one moves to
// the notes, where it costs more than in its place.
func (p *planner) leftOutGain(s Slot) int {
	switch {
	case s.Place == core.PlaceLeftOut:
		return 0
	case s.Place == core.PlaceCovered:
		return s.Size
	case s.Pinned:
		return s.Size - p.r.of(s.Tokens+pinnedLine) - p.r.of(pinnedWrap)
	default:
		return s.Size
	}
}

// fitRun makes the run in progress small: mask its old tool results, shorten its
// messages, leave out its oldest tool rounds, then shorten the user's message. One
// that alone exceeds the budget is shortened first.
func (p *planner) fitRun() {
	steps := []func(){
		p.shareWithUser,
		p.maskRun,
		func() { p.level(p.b.Landing, comfortable) },
		func() { p.level(p.limit, comfortable) },
		p.leaveOutRun,
		p.leaveOutHistory, // the words that say so are there now
		func() { p.level(p.limit, 0) },
		func() { p.cutSummary(min(p.r.of(lastSummary), p.b.SummaryLimit)) },
		p.shortenUser,
	}
	for _, step := range steps {
		if p.total <= p.limit {
			return
		}
		step()
	}
}

// wholeUser takes back what an earlier compaction of this run cut from the user's
// message: whether it must be is judged anew (CONTEXT § 3, invariant 5).
func (p *planner) wholeUser() {
	if len(p.run) > 0 && p.run[0].Place == core.PlaceShortened {
		p.state = p.state.whole(p.run[0].ID)
		p.place()
	}
}

// shareWithUser lets a user's message that alone exceeds the budget have half of
// what there is, so that the tool rounds of its run have the other half.
func (p *planner) shareWithUser() {
	if len(p.run) < 2 {
		return
	}
	fixed := 0
	for _, i := range []int{sectionSystem, sectionTools, sectionPinned} {
		fixed += p.d.Sections[i].Tokens
	}
	if p.in.Summary.Version > 0 {
		fixed += p.r.of(lastSummary + summaryWrap)
	}
	if fixed+p.r.of(p.run[0].Tokens) > p.limit {
		p.shorten(p.run[:1], p.r.back((p.b.Landing-fixed)/2))
	}
}

// lastAtom returns where the newest atom of the run begins: its messages have
// not been seen by the model yet.
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
		p.mask(p.run[last].Seq - 1)
	}
}

// level is rung 6 for the run in progress: all its messages but the user's are
// held to the largest common size that brings the prompt to target, if that size
// is at least floor cl100k_base tokens.
func (p *planner) level(target, floor int) {
	if p.total <= p.limit || len(p.run) < 2 {
		return
	}
	fits := func(most int) bool {
		size := p.total
		for _, s := range p.run[1:] {
			size -= p.saving(s, most)
		}
		return size <= target
	}
	low, high := floor, 0
	for _, s := range p.run[1:] {
		high = max(high, s.Tokens)
	}
	if floor > 0 && !fits(floor) {
		return
	}
	for low < high { // the largest size that fits; monotone
		mid := (low + high + 1) / 2
		if fits(mid) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	p.shorten(p.run[1:], low)
}

// saving returns what shortening the message to most cl100k_base tokens frees.
func (p *planner) saving(s Slot, most int) int {
	if s.Pinned || s.Place != core.PlaceVerbatim && s.Place != core.PlaceShortened {
		return 0
	}
	return max(s.Size-p.r.of(missingTokens*s.Missing)-p.r.of(max(most, s.minimum())), 0)
}

// shorten is rung 6: the messages are held to most cl100k_base tokens each, as far
// as they can be.
func (p *planner) shorten(slots []Slot, most int) {
	short := map[core.MessageID]int{}
	for _, s := range slots {
		if p.saving(s, most) == 0 {
			continue
		}
		short[s.ID] = max(most, s.minimum())
		p.reason("message #%d is shortened from %d to %d tokens in the prompt", s.Seq, p.r.of(s.Tokens), p.r.of(short[s.ID]))
	}
	if len(short) == 0 {
		return
	}
	p.rung(6)
	p.state = p.state.withShortened(short)
	p.place()
}

// leaveOutRun is rung 7 for the run in progress: its oldest tool rounds go, never
// the newest.
func (p *planner) leaveOutRun() {
	var ends []int
	for i := 2; i <= p.lastAtom() && i < len(p.run); i++ {
		inside := p.run[i].Loop != "" && p.run[i].Loop == p.run[i-1].Loop // notes go as a whole
		if p.run[i].Role == core.RoleAssistant && !inside {
			ends = append(ends, i)
		}
	}
	if p.leaveOut(p.run, 1, ends) {
		p.reason("the oldest tool rounds of this run are left out of the prompt: they do not fit")
	}
}

// shortenUser is the last of rung 6: the user's message alone exceeds the budget.
func (p *planner) shortenUser() {
	if len(p.run) == 0 {
		return
	}
	u := p.run[0]
	p.shorten(p.run[:1], p.r.back(p.limit-(p.total-u.Size)))
}

// floor is rung 8: nothing can be sent.
func (p *planner) floor() {
	p.rung(8)
	pinned, message := 0, 0
	for _, s := range slices.Concat(p.pinned, p.history, p.run) {
		switch {
		case s.Place == core.PlaceLeftOut: // not there, or counted as a note
		case s.Pinned:
			pinned += s.Size
		default:
			message += s.Size
		}
	}
	parts := []core.ContextPart{
		{Name: "system prompt", Tokens: p.r.of(p.in.System)}, {Name: "tool definitions", Tokens: p.r.of(p.in.Tools)},
		{Name: "pinned messages", Tokens: pinned}, {Name: "message", Tokens: message},
	}
	culprit := slices.MaxFunc(parts, func(a, b core.ContextPart) int { return cmp.Compare(a.Tokens, b.Tokens) })
	p.d.Floor = &FloorError{Culprit: culprit.Name, Floor: p.total, Usable: p.limit}
	p.reason("%s", p.d.Floor.Error())
}
