package contextwindow

import (
	"slices"

	"bobbin/app/core"
)

// The tool loop of a run is made small apart from the history: its older rounds are
// replaced, in the prompt only, by one message of notes (REQUIREMENTS L2). The notes
// are a stored summary of kind run; where they are used the PromptState says.
//
//	question │ notes on rounds 1–5 │ round 6 │ round 7 │ round 8
//	           └─ LoopRange ─────┘   └─ KeepRecent, verbatim ┘
//
// A round is an atom, so nothing is split; the question is never part of a range. The
// range stays in use after the run, until the rolling summary has passed it: that one
// is made from the messages themselves.

// LoopRange is where notes stand for the messages of a tool loop, both ends included.
type LoopRange struct {
	ID      core.SummaryID `json:"id"`
	From    int64          `json:"from"`
	Through int64          `json:"through"`
	Tokens  int            `json:"tokens"` // cl100k_base, of the notes
}

// The triggers of a loop's compaction.
const (
	triggerIterations = "iterations"
	triggerLoopTokens = "tokens"
)

// The size of notes: as a summary's where the policy sets none, and no more than this
// share of the landing point, as there is a summary beside them.
const loopLandingShare = 0.2

// loopWorth is how much older rounds must have beyond the words around the notes for
// their replacement to gain anything, in cl100k_base tokens.
const loopWorth = worthSummarizing

// loop returns the range that the message is in; nil if it is in none.
func (s PromptState) loop(it Item) *LoopRange {
	if it.Role != core.RoleAssistant && it.Role != core.RoleTool {
		return nil
	}
	i := slices.IndexFunc(s.Loops, func(r LoopRange) bool { return r.From <= it.Seq && it.Seq <= r.Through })
	if i < 0 {
		return nil
	}
	return &s.Loops[i]
}

// withLoop returns the state with one more range, in place of those inside it. What
// was left out there is told by the notes from now on.
func (s PromptState) withLoop(r LoopRange) PromptState {
	loops := slices.DeleteFunc(slices.Clone(s.Loops), func(old LoopRange) bool { return r.From <= old.From && old.Through <= r.Through })
	s.Loops = append(loops, r)
	slices.SortFunc(s.Loops, func(a, b LoopRange) int { return int(a.From - b.From) })
	var ranges []SeqRange
	for _, out := range s.LeftOut {
		if before := (SeqRange{out.From, min(out.Through, r.From-1)}); before.From <= before.Through {
			ranges = append(ranges, before)
		}
		if behind := (SeqRange{max(out.From, r.Through+1), out.Through}); behind.From <= behind.Through {
			ranges = append(ranges, behind)
		}
	}
	s.LeftOut = ranges
	return s
}

// loopsBehind returns the ranges that the cursor has not passed.
func (s PromptState) loopsBehind(cursor int64) []LoopRange {
	var out []LoopRange
	for _, r := range s.Loops {
		if r.Through > cursor {
			out = append(out, r)
		}
	}
	return out
}

// loopSlots gives the messages that notes stand for their place: the first of each
// range has the size of the notes, the others have none.
func (p *planner) loopSlots(slots []Slot) {
	var last core.SummaryID
	for i := range slots {
		s := &slots[i]
		r := p.state.loop(s.Item)
		if r == nil {
			continue
		}
		place, limit := core.PlaceCovered, 0
		if s.Place == core.PlaceLeftOut {
			place = core.PlaceLeftOut
		}
		if r.ID != last {
			limit, last = r.Tokens+loopWrap, r.ID
		}
		*s = Slot{Item: s.Item, Place: place, Loop: r.ID, Limit: limit, Note: s.Pinned}
		if place == core.PlaceCovered {
			s.Size = p.r.of(limit)
		}
	}
}

// weight returns the cl100k_base tokens of a message as it counts for what a summary
// takes over: those of the notes for what they stand for.
func (s Slot) weight() int {
	if s.Loop != "" {
		return s.Limit
	}
	return s.Tokens
}

// loops returns the ranges in use, and how many messages are in them.
func (p *planner) loops() (used []LoopRange, messages int) {
	for _, s := range slices.Concat(p.history, p.run) {
		if s.Place != core.PlaceCovered {
			continue
		}
		messages++
		if len(used) == 0 || used[len(used)-1].ID != s.Loop {
			used = append(used, *p.state.loop(s.Item))
		}
	}
	return used, messages
}

// rounds is the tool loop of the run in progress.
type rounds struct {
	notes  int   // index of the first message that no notes stand for
	starts []int // indexes of the assistant's messages from there on
	end    int   // behind the last of them
}

// rounds finds the tool rounds of the run. They end at the first message that is not
// part of one, or where seq has a gap: what a range covers must be what was read.
func (p *planner) rounds() rounds {
	var r rounds
	i := 1
	for i < len(p.run) && p.run[i].Loop != "" {
		i++
	}
	r.notes, r.end = i, i
	for i < len(p.run) && len(p.run[i].Calls) > 0 && p.adjoins(i) {
		start := i
		for i++; i < len(p.run) && p.run[i].Role == core.RoleTool && p.adjoins(i); i++ {
		}
		r.starts, r.end = append(r.starts, start), i
	}
	return r
}

// adjoins reports whether the message of the run is the next in the log after the one
// before it; the first round may stand anywhere after the question.
func (p *planner) adjoins(i int) bool { return i == 1 || p.run[i].Seq == p.run[i-1].Seq+1 }

// loopTrigger says why the tool loop is to be compacted, by its own limits, and notes
// how near they are; empty = it is not.
func (p *planner) loopTrigger() string {
	l := p.in.Loop
	if !l.Enabled || p.in.Force || len(p.run) < 2 {
		return ""
	}
	r := p.rounds()
	since := len(r.starts)
	if r.notes > 1 {
		since = max(since-l.KeepRecent, 0) // that many were there when the last notes were made
	}
	due := since >= l.Threshold
	p.status("iterations", since, l.Threshold, due)
	over := l.MaxContextTokens > 0 && p.total > l.MaxContextTokens
	if l.MaxContextTokens > 0 {
		p.status("loop_tokens", p.total, l.MaxContextTokens, over)
	}
	switch {
	case p.in.NoLoop:
		return ""
	case due:
		return triggerIterations
	case over:
		return triggerLoopTokens
	default:
		return ""
	}
}

// loopOrder returns the order to replace the older rounds of the run by notes; nil if
// that is not possible or gains too little. By size it is worth it when the rounds that
// the notes take over have a quarter of the limit: else the next one would follow at
// once.
func (p *planner) loopOrder(trigger string) *Order {
	l := p.in.Loop
	if !l.Enabled || p.in.NoLoop || p.in.Force || len(p.run) < 2 {
		return nil
	}
	r := p.rounds()
	if len(r.starts) <= l.KeepRecent {
		return nil
	}
	cut := r.starts[len(r.starts)-l.KeepRecent]
	fresh, replaced := 0, 0
	for i, s := range p.run[1:cut] {
		replaced += s.shown()
		if i+1 >= r.notes {
			fresh += s.Size
		}
	}
	if replaced < loopWrap+loopWorth {
		return nil
	}
	if trigger == triggerLoopTokens && fresh < share(resetShare, p.loopLimit()) {
		return nil
	}
	return p.loopThrough(cut, replaced, trigger)
}

// loopThrough returns the order for the messages of the run up to cut.
func (p *planner) loopThrough(cut, replaced int, trigger string) *Order {
	most := min(summarySize(p.b.Window), share(loopLandingShare, p.b.Landing))
	limit := max(min(p.r.back(most), (replaced-loopWrap)/2), 1)
	first, last := p.run[1], p.run[cut-1]
	return &Order{
		Kind: core.SummaryRun, FromID: first.ID, FromSeq: first.Seq, ThroughID: last.ID, ThroughSeq: last.Seq,
		Messages: cut - 1, Tokens: replaced - loopWrap, Limit: limit, AskFor: limit, Trigger: trigger, Rung: 2,
	}
}

// shown returns how many cl100k_base tokens the message has in the prompt at most.
func (s Slot) shown() int {
	switch s.Place {
	case core.PlaceLeftOut:
		return 0
	case core.PlaceMasked:
		return maskTokens
	case core.PlaceShortened, core.PlaceCovered:
		return s.Limit
	default:
		return s.Tokens
	}
}

// loopLimit returns over which size the prompt of a run is too large.
func (p *planner) loopLimit() int {
	if most := p.in.Loop.MaxContextTokens; most > 0 {
		return min(most, p.b.Trigger)
	}
	return p.b.Trigger
}

// loopFirst returns the order for the tool loop when it comes before everything else:
// by its own limits, or when it frees at least half of what is too much, so that a
// loop that has grown does not push the conversation into the summary.
func (p *planner) loopFirst(f fired) *Order {
	if f.loop != "" {
		return p.loopOrder(f.loop)
	}
	if !f.byTokens() {
		return nil
	}
	o := p.loopOrder(triggerLoopTokens)
	if o == nil {
		return nil
	}
	gain := p.r.of(o.Tokens) - p.r.of(o.Limit)
	if 2*gain < p.total-p.b.Landing {
		return nil
	}
	return o
}

// Messages returns how many messages the prompt has besides the system blocks.
func (d Decision) Messages() int {
	n := 0
	for _, s := range d.Sections {
		if s.Name == "tail" || s.Name == "run" {
			n += s.Messages
		}
	}
	return n
}
