package contextwindow

import (
	"fmt"
	"iter"
	"slices"

	"bobbin/app/core"
)

// planner is the state of one Plan call.
type planner struct {
	in        Input
	scale     tokenScale
	budget    Budget
	state     PromptState
	loops     []LoopRange // of the state, without those made for a smaller model
	decision  Decision
	limit     int       // max size of the prompt: usable, or the cap
	limits    []trigger // of the policy
	slots     []Slot    // of history and run
	history   []Slot
	run       []Slot
	pinned    []Slot
	standing  []Instruction // that the prompt lists, oldest first
	omitted   int           // that have no room among them
	isReduced bool          // the ladder is climbed
	sizes     [sectionCount]core.ContextPart
	total     int
	setup     placedSetup
	ahead     growth // until the trigger, when planning ahead; zero = none
}

// Plan decides what is sent. It returns the decision and the PromptState that belongs to it:
// the given one, unless Decision.Compacted says that it changed or Decision.Summarize asks
// for a summary.
//
// If Decision.Summarize is set, the caller makes that summary and plans again with the
// returned state and the shorter history (Input.After), or with the given state and
// NoSummary or NoLoop if it gains nothing. If Decision.Activate is set, the caller activates that version and plans again
// (Input.Activated). If Decision.Floor is set, nothing can be sent, not even with a summary. Otherwise the decision
// is a prompt that fits; Decision.Prepare says what to summarize ahead, beside it.
func Plan(in Input) (Decision, PromptState) {
	d, state := planOnce(in)
	if d.Summarize == nil || in.Force {
		return d, state
	}
	in.NoSummary, in.NoLoop = true, true
	if refused, before := planOnce(in); refused.Floor != nil {
		if best, _ := planOnce(in.withBestSummary()); best.Floor != nil {
			return refused, before
		}
	}
	return d, state
}

// planOnce is Plan, but that a summary may be ordered although none can make the prompt fit.
func planOnce(in Input) (Decision, PromptState) {
	p := newPlanner(in)
	p.placeMessages()
	p.limits = p.triggersAt(p.total, len(p.in.History), p.sinceCursor())
	for _, t := range p.limits {
		p.addStatus(t.TriggerStatus)
	}
	f := selectTriggers(p.limits, func(t trigger) bool { return t.Fires })
	f.hard = p.total > p.fitLimit()
	f.loop = p.loopTrigger()
	if order := p.loopFirst(f); order != nil {
		p.orderNow(order)
	} else if f.anyFired() || in.Summarized || in.Force {
		p.climbLadder(f)
	} else {
		p.decision.Room = p.roomLeft(p.prepareAhead())
	}
	if !p.decision.Compacted && p.decision.Summarize == nil && p.decision.Activate == nil {
		return p.finishDecision(), in.State
	}
	return p.finishDecision(), p.state
}

// PlanAsIs returns the decision that sends everything as the state says, even if it does not fit.
func PlanAsIs(in Input) Decision {
	p := newPlanner(in)
	p.placeMessages()
	return p.finishDecision()
}

func newPlanner(in Input) *planner {
	if !(in.Factor > 0) { // NaN too
		in.Factor = 1
	}
	in.NoLoop = in.NoLoop || in.Once != "" || in.Phase == AfterRun // the run in progress compacts its own loop
	in.NoSummary = in.NoSummary || in.Once != ""
	p := &planner{in: in, scale: tokenScale{in.Factor}, state: in.initialState()}
	p.budget = in.Policy.Budget(in.Model, p.scale.toModel(in.System+ListOverhead)+p.scale.toModel(in.Tools))
	p.limit = p.budget.Usable
	if in.Cap > 0 {
		p.limit = min(p.limit, in.Cap)
		p.budget.Landing = min(p.budget.Landing, shareOf(in.Policy.LandAt, p.limit))
	}
	p.loops = slices.DeleteFunc(slices.Clone(p.state.Loops), func(r LoopRange) bool { return p.madeForSmaller(r.MadeFor) })
	p.decision.Budget, p.decision.Factor = p.budget, in.Factor
	return p
}

// initialState returns the state with which the plan begins.
func (in Input) initialState() PromptState {
	s := in.State
	if s.Landed != nil && s.Landed.Window < in.Model.Window {
		// What was cut for a smaller window is sent whole again. Notes are summaries and stay.
		s = PromptState{Loops: s.Loops}
	}
	if in.Summarized {
		s.SummaryCut = 0 // it was for the previous summary
		s.StandingOut = false
	}
	return s
}

// placeMessages gives every message its place and size under the current state and adds up the prompt.
func (p *planner) placeMessages() {
	items := joined(p.in.History, p.in.Run)
	orphans, missing := findUnpaired(items)
	p.pinned = p.pinned[:0]
	for _, it := range p.in.Pinned {
		p.addPinnedNote(Slot{Item: it})
	}
	slots := slices.Grow(p.slots[:0], len(p.in.History)+len(p.in.Run))
	for it := range items {
		s := p.placeItem(it, orphans[it.ID])
		if s.Place != core.PlaceLeftOut {
			s.Missing = missing[it.ID]
			s.Size += p.scale.toModel(missingTokens * s.Missing)
		}
		slots = append(slots, s)
	}
	p.loopSlots(slots)
	p.placeQuotes(slots[:len(p.in.History)])
	p.placeSetups(slots)
	for _, s := range slots {
		if s.Note {
			p.addPinnedNote(s)
		}
	}
	p.slots, p.history, p.run = slots, slots[:len(p.in.History)], slots[len(p.in.History):]
	p.chooseStanding()
	p.sumSections()
}

// addPinnedNote adds a pinned message to the notes.
func (p *planner) addPinnedNote(s Slot) {
	s.Tokens, s.Native = s.asText(), 0
	s.Note, s.Loop, s.Place, s.Size = true, "", core.PlaceVerbatim, p.scale.toModel(s.Tokens+pinnedLine)
	p.pinned = append(p.pinned, s)
}

// maxNativeShare is the part of a prompt that the files of one message may take besides
// their text. Where they would take more it has their text, so that they do not push the
// conversation out.
const maxNativeShare = 0.5

// placeItem returns where the state puts one message.
func (p *planner) placeItem(it Item, orphan bool) Slot {
	if orphan {
		it.Tokens += orphanWrap
	}
	s := Slot{Item: it, Place: core.PlaceVerbatim, Size: p.scale.toModel(it.Tokens), Orphan: orphan}
	if it.Thoughts > 0 && inRanges(p.state.ThoughtsDropped, it.Seq) {
		s.Bare = true
		it.Tokens -= it.Thoughts
		s.Item, s.Size = it, p.scale.toModel(it.Tokens)
	}
	n, short := p.state.Shortened[it.ID]
	short = short && !it.Pinned
	if !short && p.scale.toModel(it.Native) > shareOf(maxNativeShare, p.limit) {
		n, short = it.asText(), true
	}
	switch {
	case inRanges(p.state.LeftOut, it.Seq):
		s.Place, s.Size, s.Note = core.PlaceLeftOut, 0, it.Pinned
	case !it.Pinned && it.Role == core.RoleTool && it.Seq <= p.state.MaskedThrough && it.Tokens > maskTokens:
		s.Place, s.Size = core.PlaceMasked, p.scale.toModel(maskTokens)
	case short && n < it.Tokens:
		s.Place, s.Size, s.Limit = core.PlaceShortened, p.scale.toModel(n), n
	}
	return s
}

// sumSections adds up the prompt by section.
func (p *planner) sumSections() {
	p.sizes = [sectionCount]core.ContextPart{}
	pinned, tail, system := &p.sizes[SectionPinned], &p.sizes[SectionTail], &p.sizes[SectionSystem]
	for i, slots := range [sectionCount][]Slot{SectionPinned: p.pinned, SectionTail: p.history, SectionRun: p.run} {
		part := &p.sizes[i]
		for _, s := range slots {
			counted := s.Place != core.PlaceCovered || s.Limit > 0 // of the messages that notes replace, the first
			if s.Note && part != pinned && s.Place != core.PlaceCovered || s.Place == core.PlaceLeftOut || !counted {
				continue
			}
			part.Tokens += s.Size
			part.Messages++
		}
	}
	if len(p.pinned) > 0 {
		pinned.Tokens += p.scale.toModel(pinnedWrap)
	}
	i := slices.IndexFunc(p.slots, func(s Slot) bool { return s.Place != core.PlaceLeftOut })
	if i >= 0 && p.slots[i].Role != core.RoleUser && !p.slots[i].Orphan && p.slots[i].Place != core.PlaceCovered && len(p.standing) == 0 {
		tail.Tokens += p.scale.toModel(openingMarker)
	}
	system.Tokens = p.scale.toModel(p.in.System+p.setup.system+ListOverhead) + p.scale.toModel(p.setup.appended)
	if p.anyLeftOut() {
		system.Tokens += p.scale.toModel(leftOutMarker)
	}
	if slices.ContainsFunc(p.history, func(s Slot) bool { return s.Repeated.Tokens > 0 }) {
		system.Tokens += p.scale.toModel(withdrawnTokens)
	}
	p.sizes[SectionTools].Tokens = p.scale.toModel(p.in.Tools + p.setup.tools)
	p.sizes[SectionSummary] = core.ContextPart{Tokens: p.summarySize(), Messages: p.in.Summary.Messages}
	if len(p.in.Standing) > 0 {
		p.sizes[SectionStanding] = p.standingSection()
	}
	p.total = p.ahead.prompt
	for _, s := range p.sizes {
		p.total += s.Tokens
	}
}

// summarySize returns the tokens of the summary block, 0 without one.
func (p *planner) summarySize() int {
	s := p.in.Summary
	if p.state.SummaryCut > 0 {
		s.Tokens = min(s.Tokens, p.state.SummaryCut)
	}
	return p.sizeOf(s)
}

func (p *planner) anyLeftOut() bool {
	return slices.ContainsFunc(p.slots, func(s Slot) bool { return s.Place == core.PlaceLeftOut })
}

// finishDecision completes the decision.
func (p *planner) finishDecision() Decision {
	if p.in.Once != "" {
		p.addReason("%s", p.in.Once)
	}
	p.estimateTurnsLeft()
	p.addRecalled()
	var loops []LoopRange
	var most Slot // that is shortened
	places := map[core.Placement]int{}
	for _, s := range p.slots {
		if places[s.Place]++; s.Place == core.PlaceShortened && s.Tokens-s.Limit > most.Tokens-most.Limit {
			most = s
		}
		if n := len(loops); s.Place == core.PlaceCovered && (n == 0 || loops[n-1].ID != s.Loop) {
			loops = append(loops, *findLoop(p.loops, s.Item))
		}
	}
	if n := places[core.PlaceShortened]; n > 0 && p.in.Once == "" { // else that is the reason
		p.addReason("messages that are shortened in the prompt: %d, most of all #%d, from %d to %d tokens", n, most.Seq, most.Tokens, most.Limit)
	}
	if n := places[core.PlaceCovered]; n > 0 {
		p.addReason("%d messages of tool loops are replaced by notes", n)
	}
	d := p.decision
	d.Total, d.Pinned, d.History, d.Run, d.Loops = p.total, p.pinned, p.history, p.run, loops
	d.Standing, d.StandingOmitted = p.standing, p.omitted
	d.SummaryCut = p.state.SummaryCut
	d.Setup, d.Frozen, d.AppendsSetup = p.in.Setup, p.setup.frozen, p.setup.appended > 0
	d.ToolChanges = p.in.ToolChanges
	if d.SummaryCut >= p.in.Summary.Tokens {
		d.SummaryCut = 0
	}
	for i, part := range p.sizes {
		section := Section(i)
		if section == SectionStanding && len(p.in.Standing) == 0 || section == SectionRecalled && p.budget.Recall == 0 {
			continue
		}
		part.Name = section.String()
		d.Sections = append(d.Sections, part)
	}
	d.Sections = append(d.Sections, core.ContextPart{Name: "reserve", Tokens: p.budget.Reserve},
		core.ContextPart{Name: "free", Tokens: max(p.budget.Usable-p.total, 0)})
	// The prompt may be as much larger as the margin says.
	limit := p.in.Model.MaxOutput
	if limit <= 0 {
		limit = p.in.Policy.ResponseReserve
	}
	if p.in.Cap > 0 {
		limit = min(limit, p.budget.Reserve) // the provider refused the sum of prompt and answer
	}
	left := p.budget.Window - p.total - int(p.in.Margin*float64(p.total))
	d.MaxOutput = max(min(limit, left), min(limit, p.budget.Reserve/2), 1)
	return d
}

// addReason records why something was decided.
func (p *planner) addReason(format string, args ...any) {
	p.decision.Reasons = append(p.decision.Reasons, fmt.Sprintf(format, args...))
}

// addRung records that a rung of the ladder was climbed.
func (p *planner) addRung(n int) {
	if !slices.Contains(p.decision.Rungs, n) {
		p.decision.Rungs = append(p.decision.Rungs, n)
	}
}

// findUnpaired finds tool results without their call, and calls without their result. A result belongs to the nearest
// assistant message before it, with only other results between (invariant 4).
func findUnpaired(items iter.Seq[Item]) (orphans map[core.MessageID]bool, missing map[core.MessageID]int) {
	orphans, missing = map[core.MessageID]bool{}, map[core.MessageID]int{}
	var owner core.MessageID
	var open []string
	closeAtom := func() {
		if len(open) > 0 {
			missing[owner] = len(open)
		}
		open = nil
	}
	for it := range items {
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

// joined yields the elements of the lists, which are long, without a copy of them.
func joined[T any](lists ...[]T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, list := range lists {
			for _, x := range list {
				if !yield(x) {
					return
				}
			}
		}
	}
}
