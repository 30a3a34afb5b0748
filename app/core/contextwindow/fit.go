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
	most := max(p.b.Landing/historyShare, 1)
	var large []Slot
	for _, s := range p.history {
		if s.Place == core.PlaceVerbatim && !s.Pinned && s.Size > most && s.minimum() < s.Tokens {
			large = append(large, s)
		}
	}
	slices.SortStableFunc(large, func(a, b Slot) int { return cmp.Compare(b.Size, a.Size) })
	for _, s := range large {
		if p.total <= p.b.Landing {
			return
		}
		p.shorten(s.Item, max(p.r.back(most), s.minimum()))
	}
	p.leaveOutHistory()
}

// leaveOutHistory is rung 7 for the history: the oldest turns go.
func (p *planner) leaveOutHistory() {
	n := len(p.in.History)
	if n == 0 || p.total <= p.b.Landing {
		return
	}
	p.rung(7)
	before := p.state
	ends := append(p.cuts(), n)
	for _, end := range ends {
		if end == n && len(p.in.Run) == 0 && p.total <= p.limit {
			break // between runs the newest turn stays if it fits
		}
		p.state = before.withLeftOut(p.in.History[0].Seq, p.in.History[end-1].Seq)
		p.place()
		if p.total <= p.b.Landing {
			break
		}
	}
	p.reason("the oldest messages are left out of the prompt: they do not fit")
}

// fitRun makes the run in progress small: mask its old tool results, shorten its
// messages, leave out its oldest tool rounds, then shorten the user's message.
func (p *planner) fitRun() {
	steps := []func(){
		p.maskRun,
		func() { p.level(p.b.Landing, comfortable) },
		func() { p.level(p.limit, comfortable) },
		p.leaveOutRun,
		func() { p.level(p.limit, 0) },
		func() { p.cutSummary(p.r.of(lastSummary)) },
		p.shortenUser,
	}
	for _, step := range steps {
		if p.total <= p.limit {
			return
		}
		step()
	}
	if p.total > p.limit {
		p.floor()
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
	last := p.lastAtom()
	if last >= len(p.run) || last < 1 {
		return
	}
	p.rung(1)
	p.state.MaskedThrough = max(p.state.MaskedThrough, p.run[last].Seq-1)
	p.place()
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
	for _, s := range p.run[1:] {
		if p.saving(s, low) > 0 {
			p.shorten(s.Item, max(low, s.minimum()))
		}
	}
}

// saving returns what shortening the message to most cl100k_base tokens frees.
func (p *planner) saving(s Slot, most int) int {
	if s.Pinned || s.Place != core.PlaceVerbatim && s.Place != core.PlaceShortened {
		return 0
	}
	return max(s.Size-p.r.of(missingTokens*s.Missing)-p.r.of(max(most, s.minimum())), 0)
}

// shorten is rung 6 for one message.
func (p *planner) shorten(it Item, tokens int) {
	if !slices.Contains(p.d.Rungs, 6) {
		p.rung(6)
	}
	p.reason("message #%d is shortened from %d to %d tokens in the prompt", it.Seq, p.r.of(it.Tokens), p.r.of(tokens))
	p.state = p.state.withShortened(it.ID, tokens)
	p.place()
}

// leaveOutRun is rung 7 for the run in progress: its oldest tool rounds go, never
// the newest.
func (p *planner) leaveOutRun() {
	last := p.lastAtom()
	if last >= len(p.run) || last < 2 {
		return
	}
	p.rung(7)
	before := p.state
	for i := 2; i <= last; i++ {
		if p.run[i].Role != core.RoleAssistant {
			continue
		}
		p.state = before.withLeftOut(p.in.Run[1].Seq, p.in.Run[i].Seq-1)
		p.place()
		if p.total <= p.limit {
			break
		}
	}
	p.reason("the oldest tool rounds of this run are left out of the prompt: they do not fit")
}

// shortenUser is the last of rung 6: the user's message alone exceeds the budget.
func (p *planner) shortenUser() {
	if len(p.run) == 0 {
		return
	}
	u := p.run[0]
	room := p.r.back(p.limit - (p.total - u.Size))
	if room < u.minimum() {
		room = u.minimum()
	}
	if room < u.Tokens {
		p.shorten(u.Item, room)
	}
}

// floor is rung 8: nothing can be sent.
func (p *planner) floor() {
	p.rung(8)
	parts := []struct {
		name   string
		tokens int
	}{
		{"system prompt", p.r.of(p.in.System)}, {"tool definitions", p.r.of(p.in.Tools)},
		{"pinned messages", p.d.Sections[3].Tokens}, {"message", p.d.Sections[4].Tokens + p.d.Sections[5].Tokens},
	}
	culprit := slices.MaxFunc(parts, func(a, b struct {
		name   string
		tokens int
	},
	) int {
		return cmp.Compare(a.tokens, b.tokens)
	})
	p.d.Floor = &FloorError{Culprit: culprit.name, Floor: p.total, Usable: p.limit}
	p.reason("%s", p.d.Floor.Error())
}
