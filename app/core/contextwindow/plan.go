package contextwindow

import (
	"fmt"
	"slices"

	"bobbin/app/core"
)

// planner is one Plan in the making.
type planner struct {
	in      Input
	r       ruler
	b       Budget
	state   PromptState
	d       Decision
	limit   int // no prompt above this: usable, or the cap
	history []Slot
	run     []Slot
	pinned  []Slot
	total   int
	ahead   growth // until the trigger, of a plan for what is prepared; zero = none
}

// Plan decides what is sent. It returns the decision and the PromptState that
// belongs to it: the one given, unless Decision.Compacted says that it changed or
// Decision.Summarize asks for a summary.
//
// When Decision.Summarize is set the caller makes that summary and plans again
// with the state returned and the shorter history (Input.After), or with NoSummary
// if it brings nothing. When Decision.Activate is set the caller puts the prepared
// summary to use and plans again likewise (Input.Activated). When Decision.Floor is
// set nothing can be sent. Otherwise the decision is a prompt that fits;
// Decision.Prepare says what is best summarized ahead, beside it.
func Plan(in Input) (Decision, PromptState) {
	p := newPlanner(in)
	p.place()
	f := p.triggers()
	if order := p.loopFirst(f); order != nil {
		p.ask(order)
	} else if f.any() || in.Summarized || in.Force {
		p.compact(f)
	} else {
		p.prepare()
	}
	if !p.d.Compacted && p.d.Summarize == nil && p.d.Activate == nil {
		return p.decision(), in.State
	}
	return p.decision(), p.state
}

func newPlanner(in Input) *planner {
	if !(in.Factor > 0) { // NaN too
		in.Factor = 1
	}
	if in.Moment == AfterRun {
		in.NoLoop = true // the loop of a run that goes on is its own business
	}
	p := &planner{in: in, r: ruler{in.Factor}, state: in.stateNow()}
	p.b = in.Policy.Budget(in.Model, p.r.of(in.System+ListOverhead)+p.r.of(in.Tools))
	p.limit = p.b.Usable
	if in.Cap > 0 {
		p.limit = min(p.limit, in.Cap)
		p.b.Landing = min(p.b.Landing, share(in.Policy.LandAt, p.limit))
	}
	p.d.Budget, p.d.Factor = p.b, in.Factor
	return p
}

// stateNow returns the state that the plan begins with.
func (in Input) stateNow() PromptState {
	s := in.State.within(in.Model.Window)
	if in.Summarized {
		s.SummaryCut = 0 // it was for the summary before
	}
	return s
}

// place gives every message its place and size under the present state and adds
// up the prompt.
func (p *planner) place() {
	items := make([]Item, 0, len(p.in.History)+len(p.in.Run))
	items = append(append(items, p.in.History...), p.in.Run...)
	orphans, missing := pairing(items)
	p.pinned = p.pinned[:0]
	for _, it := range p.in.Pinned {
		p.note(Slot{Item: it})
	}
	slots := make([]Slot, len(items))
	for i, it := range items {
		s := p.slot(it, orphans[it.ID])
		if s.Place != core.PlaceLeftOut {
			s.Missing = missing[it.ID]
			s.Size += p.r.of(missingTokens * s.Missing)
		}
		slots[i] = s
	}
	p.loopSlots(slots)
	for _, s := range slots {
		if s.Note {
			p.note(s)
		}
	}
	p.history, p.run = slots[:len(p.in.History)], slots[len(p.in.History):]
	p.sum()
}

// note puts a pinned message among the notes.
func (p *planner) note(s Slot) {
	s.Note, s.Loop, s.Place, s.Size = true, "", core.PlaceVerbatim, p.r.of(s.Tokens+pinnedLine)
	p.pinned = append(p.pinned, s)
}

// slot returns where the state puts one message.
func (p *planner) slot(it Item, orphan bool) Slot {
	if orphan {
		it.Tokens += orphanWrap
	}
	s := Slot{Item: it, Place: core.PlaceVerbatim, Size: p.r.of(it.Tokens), Orphan: orphan}
	switch n, short := p.state.Shortened[it.ID]; {
	case p.state.leftOut(it.Seq):
		s.Place, s.Size, s.Note = core.PlaceLeftOut, 0, it.Pinned
	case it.Pinned:
	case it.Role == core.RoleTool && it.Seq <= p.state.MaskedThrough && it.Tokens > maskTokens:
		s.Place, s.Size = core.PlaceMasked, p.r.of(maskTokens)
	case short && n < it.Tokens:
		s.Place, s.Size, s.Limit = core.PlaceShortened, p.r.of(n), n
	}
	return s
}

// The sections of a prompt that the ladder asks for.
const (
	sectionSystem = 0
	sectionTools  = 1
	sectionPinned = 3
)

// sum adds up the prompt by section.
func (p *planner) sum() {
	var out [4]core.ContextPart
	for i, slots := range [][]Slot{p.pinned, p.history, p.run} {
		for _, s := range slots {
			told := s.Place != core.PlaceCovered || s.Limit > 0 // of those that notes stand for, the first
			if s.Note && i > 0 && s.Place != core.PlaceCovered || s.Place == core.PlaceLeftOut || !told {
				continue
			}
			out[i].Tokens += s.Size
			out[i].Messages++
		}
	}
	if len(p.pinned) > 0 {
		out[0].Tokens += p.r.of(pinnedWrap)
	}
	if p.opensWithAssistant() {
		out[1].Tokens += p.r.of(openingMarker)
	}
	system := p.r.of(p.in.System + ListOverhead)
	if p.anyLeftOut() {
		system += p.r.of(leftOutMarker)
	}
	summary := core.ContextPart{Name: "summary", Tokens: p.summarySize(), Messages: p.in.Summary.Messages}
	p.d.Sections = []core.ContextPart{
		{Name: "system", Tokens: system}, {Name: "tools", Tokens: p.r.of(p.in.Tools)}, summary,
		{Name: "pinned", Tokens: out[0].Tokens, Messages: out[0].Messages},
		{Name: "tail", Tokens: out[1].Tokens, Messages: out[1].Messages},
		{Name: "run", Tokens: out[2].Tokens, Messages: out[2].Messages},
	}
	p.total = p.ahead.prompt
	for _, s := range p.d.Sections {
		p.total += s.Tokens
	}
}

// summarySize returns what the summary block costs, 0 without one.
func (p *planner) summarySize() int {
	if p.in.Summary.Version == 0 {
		return 0
	}
	tokens := p.in.Summary.Tokens
	if p.state.SummaryCut > 0 {
		tokens = min(tokens, p.state.SummaryCut)
	}
	return p.r.of(tokens + summaryWrap)
}

func (p *planner) anyLeftOut() bool {
	for _, slots := range [][]Slot{p.history, p.run} {
		for _, s := range slots {
			if s.Place == core.PlaceLeftOut {
				return true
			}
		}
	}
	return false
}

// opensWithAssistant reports whether the first message sent is not a user's.
func (p *planner) opensWithAssistant() bool {
	for _, slots := range [][]Slot{p.history, p.run} {
		for _, s := range slots {
			if s.Place != core.PlaceLeftOut {
				return s.Role != core.RoleUser && !s.Orphan && s.Place != core.PlaceCovered
			}
		}
	}
	return false
}

// decision closes the plan.
func (p *planner) decision() Decision {
	d := p.d
	d.Total, d.Pinned, d.History, d.Run = p.total, p.pinned, p.history, p.run
	d.SummaryCut = p.state.SummaryCut
	var covered int
	if d.Loops, covered = p.loops(); covered > 0 {
		p.reason("%d messages of tool loops are told by notes", covered)
		d.Reasons = p.d.Reasons
	}
	if d.SummaryCut >= p.in.Summary.Tokens {
		d.SummaryCut = 0
	}
	free := max(p.b.Usable-p.total, 0)
	d.Sections = append(d.Sections, core.ContextPart{Name: "reserve", Tokens: p.b.Reserve}, core.ContextPart{Name: "free", Tokens: free})
	d.MaxOutput = p.maxOutput()
	return d
}

// maxOutput returns the request's output limit: min(maximum output, window −
// prompt), where the prompt is taken as large as the margin says it may be.
func (p *planner) maxOutput() int {
	most := p.in.Model.MaxOutput
	if most <= 0 {
		most = p.in.Policy.ResponseReserve
	}
	if p.in.Cap > 0 {
		most = min(most, p.b.Reserve) // the provider refused the sum of prompt and answer
	}
	left := p.b.Window - p.total - int(p.in.Margin*float64(p.total))
	return max(min(most, left), min(most, p.b.Reserve/2), 1)
}

// maxReasons bounds what a decision says of itself.
const maxReasons = 20

// reason notes why something was decided.
func (p *planner) reason(format string, args ...any) {
	if len(p.d.Reasons) >= maxReasons {
		return
	}
	p.d.Reasons = append(p.d.Reasons, fmt.Sprintf(format, args...))
}

// rung notes that a rung of the ladder was climbed.
func (p *planner) rung(n int) {
	if !slices.Contains(p.d.Rungs, n) {
		p.d.Rungs = append(p.d.Rungs, n)
	}
}

// pairing finds tool results without their call, and calls without their result.
// A result belongs to the nearest assistant message before it, with only other
// results between (CONTEXT § 3, invariant 4).
func pairing(items []Item) (orphans map[core.MessageID]bool, missing map[core.MessageID]int) {
	orphans, missing = map[core.MessageID]bool{}, map[core.MessageID]int{}
	var owner core.MessageID
	var open []string
	closeAtom := func() {
		if len(open) > 0 {
			missing[owner] = len(open)
		}
		open = nil
	}
	for _, it := range items {
		if it.Role != core.RoleTool {
			closeAtom()
			owner, open = it.ID, slices.Clone(it.Calls)
			continue
		}
		i := slices.Index(open, it.CallID)
		if i < 0 {
			orphans[it.ID] = true
			continue
		}
		open = slices.Delete(open, i, i+1)
	}
	closeAtom()
	return orphans, missing
}
