package contextwindow

import (
	"slices"

	"bobbin/app/core"
)

// ThoughtsAfter returns how many thoughts of the decision's prompt are still sent after each of
// the things that may happen next; nil if it has none, or if its model does not bind them. What
// cannot happen is not listed.
func ThoughtsAfter(in Input, d Decision, prompt Prompt) []core.ThoughtsAfter {
	if !in.Binds || prompt.Sent.Thoughts.Kept == 0 {
		return nil
	}
	p := newPlanner(in)
	p.slots, p.history, p.run = slices.Concat(d.History, d.Run), d.History, d.Run
	p.total = d.Total
	kept := p.keptThoughts(prompt)
	const none = 0
	system := none
	if in.staysValid(p.slots) {
		system = len(kept)
	}
	list := []core.ThoughtsAfter{{Action: core.AfterAnswer, Kept: kept.before(d.firstDropped())}}
	if seq, ok := p.firstMaskable(); ok {
		list = append(list, core.ThoughtsAfter{Action: core.AfterMasking, Kept: kept.before(seq)})
	}
	return append(list,
		core.ThoughtsAfter{Action: core.AfterSummary, Kept: none},
		core.ThoughtsAfter{Action: core.AfterSwitch, Kept: none},
		core.ThoughtsAfter{Action: core.AfterEdit, Kept: kept.before(p.lastQuestion())},
		core.ThoughtsAfter{Action: core.AfterSystem, Kept: system},
	)
}

// sentThoughts are the seqs of messages with thoughts, one for each thought.
type sentThoughts []int64

// before counts the thoughts of the messages before a seq.
func (s sentThoughts) before(seq int64) (n int) {
	for _, at := range s {
		if at < seq {
			n++
		}
	}
	return n
}

// keptThoughts returns the thoughts of the prompt.
func (p *planner) keptThoughts(prompt Prompt) (kept sentThoughts) {
	seqs := make(map[core.MessageID]int64, len(p.slots))
	for _, s := range p.slots {
		seqs[s.ID] = s.Seq
	}
	for _, m := range prompt.Messages {
		for _, part := range m.Parts {
			if isSigned(part) && part.Signature != "" {
				kept = append(kept, seqs[m.ID])
			}
		}
	}
	return kept
}

// firstMaskable returns the seq of the first tool result that can be masked; false if there is none.
func (p *planner) firstMaskable() (seq int64, ok bool) {
	through := p.maskableThrough()
	for _, s := range p.slots {
		if s.Seq <= through && s.Role == core.RoleTool && p.maskGain(s) > 0 {
			return s.Seq, true
		}
	}
	return 0, false
}

// lastQuestion returns the seq of the newest message of the user; 0 = none.
func (p *planner) lastQuestion() int64 {
	for _, s := range slices.Backward(p.slots) {
		if s.Role == core.RoleUser {
			return s.Seq
		}
	}
	return 0
}

// firstDropped returns the seq from which on the thoughts are dropped before the next answer:
// what the decision orders comes first.
func (d Decision) firstDropped() int64 {
	const never = 1<<63 - 1
	switch {
	case d.Activate != nil:
		return 0
	case d.Summarize == nil:
		return never
	case d.Summarize.Kind == core.SummaryRun:
		return d.Summarize.FromSeq
	default:
		return 0
	}
}
