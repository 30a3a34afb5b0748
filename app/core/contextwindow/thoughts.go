package contextwindow

import (
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
)

// Some models take a thought back only behind exactly the prompt that it was produced behind
// (llm.PrefixContract). Such a thought stays in the prompt with its message until something
// before it changes. A compaction changes the prompt on purpose: it drops the thoughts from the
// first change on, in the state, so that the plan knows the size of what is sent. Everything
// else that changes a prompt (a model, an agent, an edit, another branch, an import) shows in
// the hash that is stored with each thought: Assemble sends only thoughts whose hash is that of
// the prompt before them (invariant 7).

// withoutThoughts returns the input without the thoughts from a seq on: what precedes them changes.
func (in Input) withoutThoughts(from int64) Input {
	items := slices.Concat(in.History, in.Run)
	if !in.Binds || len(items) == 0 {
		return in
	}
	if r := (SeqRange{max(from, in.Summary.ThroughSeq+1), items[len(items)-1].Seq}); r.From <= r.Through {
		in.State.ThoughtsDropped = withRange(in.State.ThoughtsDropped, r)
	}
	return in
}

// WithoutThoughts returns the state after the provider left out thoughts of a prompt whose
// newest message was last: none of those so far is sent again.
func (s PromptState) WithoutThoughts(last int64) PromptState {
	s.ThoughtsDropped = withRange(s.ThoughtsDropped, SeqRange{1, last})
	return s
}

// dropThoughts drops the thoughts behind the first message that the compaction changed.
func (p *planner) dropThoughts() {
	from, changed := p.firstChange()
	if !changed || !p.in.Binds || len(p.slots) == 0 {
		return
	}
	last := p.slots[len(p.slots)-1].Seq
	p.state.ThoughtsDropped = withRange(p.state.ThoughtsDropped, SeqRange{max(from, p.slots[0].Seq), last})
	if lost := p.thoughtsFrom(from); lost > 0 {
		p.addReason("%d messages are sent without their thoughts: the prompt before them has changed", lost)
	}
	p.placeMessages()
	if p.total > p.limit { // the newest thoughts that are left need an earlier setup, which may be larger
		p.dropSetups()
	}
}

// firstChange returns the seq from which on the prompt of the new state differs from that of the input's.
func (p *planner) firstChange() (seq int64, changed bool) {
	before, after := p.in.initialState(), p.state
	if before.SummaryCut != after.SummaryCut || !slices.Equal(before.LeftOut, after.LeftOut) { // both are before the messages
		return 0, true
	}
	for _, s := range p.slots {
		masked := s.Place == core.PlaceMasked && s.Seq > before.MaskedThrough
		if masked || before.Shortened[s.ID] != after.Shortened[s.ID] {
			return s.Seq, true
		}
	}
	return 0, false
}

// thoughtsFrom returns how many messages from a seq on are sent with thoughts.
func (p *planner) thoughtsFrom(seq int64) int {
	n := 0
	for _, s := range p.slots {
		if s.Seq >= seq && s.sendsThoughts() {
			n++
		}
	}
	return n
}

// bindThoughts leaves only the thoughts in the prompt that its model takes, counts them, and
// takes the prompt's own prefix. It is the last step: the prefix is that of what is sent.
func (p *assembly) bindThoughts() {
	model := p.parts.Model
	if model.ThoughtOrigin == "" {
		return
	}
	prefix := llm.NewPrefix(model, p.System, p.parts.ToolSpecs, p.parts.Format, p.parts.Effort)
	p.Start = prefix.Encode()
	var replaced []llm.Prefix // of the messages that the native summary replaces; thoughts behind them are valid behind it
	if n := p.parts.Native; n != nil && n.Start == p.Start {
		for _, encoded := range n.Prefixes {
			if r, ok := llm.ParsePrefix(encoded); ok {
				replaced = append(replaced, r)
			}
		}
	}
	for i := range p.Messages {
		m := &p.Messages[i]
		if slices.ContainsFunc(m.Parts, isSigned) {
			valid := []string{prefix.String()}
			for _, r := range replaced {
				valid = append(valid, r.String())
			}
			p.keepThoughts(m, valid)
		}
		prefix = prefix.With(m.Message)
		for j := range replaced {
			if i > 0 { // the first is the native summary
				replaced[j] = replaced[j].With(m.Message)
			}
		}
	}
	p.Ends = []string{prefix.Encode()}
	for _, r := range replaced {
		p.Ends = append(p.Ends, r.Encode())
	}
	p.Prefix = prefix.String()
}

// isSigned reports whether the part is a thought that some provider takes back, or a piece of one.
func isSigned(p core.Part) bool { return p.Type == core.PartReasoning && p.Origin != "" }

// countThought reports whether the thought is sent, and counts it.
func (p *assembly) countThought(m PromptMessage, part core.Part, valid []string) bool {
	thoughts, model := &p.Sent.Thoughts, p.parts.Model
	outcome, isSent := &thoughts.Kept, false
	switch {
	case part.Origin != model.ThoughtOrigin:
		outcome = &thoughts.OtherModel
	case !model.Prefix.Binds(): // as the provider wants them: with tool calls, whatever precedes them
		if isSent = len(m.ToolCalls) > 0; !isSent {
			return false
		}
	case m.Bare:
		outcome = &thoughts.Compacted
	case part.Prefix == "":
		outcome = &thoughts.Unbound
	case !slices.Contains(valid, part.Prefix):
		outcome = &thoughts.Changed
	default:
		isSent = true
	}
	if part.Signature != "" { // else it is a piece of the thought behind it
		*outcome++
	}
	return isSent
}

// keepThoughts removes the thoughts of the message that are not sent and corrects its size. Valid
// are the prefixes of those that are.
func (p *assembly) keepThoughts(m *PromptMessage, valid []string) {
	var kept []core.Part
	for _, part := range m.Parts {
		if !isSigned(part) || p.countThought(*m, part, valid) {
			kept = append(kept, part)
		}
	}
	m.Tokens -= p.countedThoughts(m.Parts, len(m.ToolCalls) > 0)
	m.Parts = kept
	sent := p.countedThoughts(kept, true)
	if p.parts.Model.ReasoningUncounted {
		p.Sent.Hidden += sent
	}
	m.Tokens += sent
}

// countedThoughts returns the tokens of the thoughts among the parts that are counted.
func (p *assembly) countedThoughts(parts []core.Part, counted bool) int {
	n := 0
	for _, part := range p.ownParts(parts) {
		if counted && isSigned(part) {
			n += tokens.Thought(p.count.Text, part)
		}
	}
	return n
}

// ThoughtCount says what became of the thoughts in the messages of a prompt.
type ThoughtCount struct {
	Kept       int // sent
	Compacted  int // not sent: a compaction changed the prompt before them, or the provider left them out earlier
	Changed    int // the prompt before them has changed otherwise: the agent, its tools, an edit, another branch
	OtherModel int // of another model
	Unbound    int // what preceded them is not known: imported, or of an earlier version
}
