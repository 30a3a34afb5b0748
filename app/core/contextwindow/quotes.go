package contextwindow

import (
	"cmp"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Thoughts are bound to a prompt with the passages that it quoted. So these stay in the prompt,
// before the message that they were for, as long as a thought of its answers does: until the
// next compaction drops the thoughts, or the ladder gives up both (rung 0). The first thought
// of the answers says which passages they are (core.Part.Recalled); their texts are quoted anew
// from the log. Where one has changed since, the thoughts behind it are not sent, as after any
// other change.

// Quotes are passages that prompts quote again (Slot.Quotes).
type Quotes map[core.RecalledPassage]Passage

// RecalledPassages returns what the prompt of the decision quotes, in a message of so many
// cl100k_base tokens; nil if nothing, or if it cannot be quoted again.
func (d Decision) RecalledPassages(tokens int) *core.RecalledPassages {
	r := &core.RecalledPassages{Tokens: tokens}
	for _, c := range d.Recalled {
		if c.Part.MessageID == "" {
			return nil
		}
		r.Passages = append(r.Passages, c.Part)
	}
	if len(r.Passages) == 0 {
		return nil
	}
	return r
}

// placeQuotes adds the passages and the instructions to the history's user messages whose answers
// are sent with thoughts.
func (p *planner) placeQuotes(history []Slot) {
	var quotes *core.RecalledPassages
	var instructions RunInstructions
	hasThoughts := false
	for i := len(history) - 1; i >= 0; i-- {
		s := &history[i]
		if s.Role != core.RoleUser {
			hasThoughts = hasThoughts || s.sendsThoughts()
			quotes, instructions = cmp.Or(quotes, s.Recalled), cmp.Or(instructions, s.Appended)
			continue
		}
		if hasThoughts && s.Place == core.PlaceVerbatim {
			s.Quotes, s.Repeated = quotes, instructions
			s.Size += p.scale.toModel(instructions.Tokens)
			if quotes != nil {
				s.Size += p.scale.toModel(quotes.Tokens)
			}
		}
		quotes, instructions, hasThoughts = nil, RunInstructions{}, false
	}
}

// withoutQuotesEnough is rung 0 for the passages and the instructions of earlier messages. It
// reports whether that ends the plan: otherwise they stay, since what follows may keep them.
func (p *planner) withoutQuotesEnough(f firedTriggers) bool {
	if f.bySince() || p.in.Force {
		return false
	}
	before, decision := p.state, p.decision
	if !p.dropQuotes() {
		return false
	}
	if p.total > p.budget.Landing {
		p.state, p.decision = before, decision
		p.placeMessages()
		return false
	}
	p.landIfSent()
	return true
}

// dropQuotes drops the passages, the instructions and the system prompts of earlier messages, and
// with them the thoughts behind the first. It reports false if there are none.
func (p *planner) dropQuotes() bool {
	if p.dropSetups() {
		return true
	}
	i := slices.IndexFunc(p.history, func(s Slot) bool { return s.Quotes != nil || s.Repeated.Tokens > 0 })
	if i < 0 {
		return false
	}
	return p.giveUpThoughts(p.history[i].Seq, "the recalled passages and instructions before them")
}

// giveUpThoughts drops the thoughts from a seq on, for what they keep in the prompt, and reports true.
func (p *planner) giveUpThoughts(from int64, what string) bool {
	p.addRung(0)
	p.addReason("%d messages are sent without their thoughts: the conversation needs the room of %s", p.thoughtsFrom(from), what)
	p.state.ThoughtsDropped = withRange(p.state.ThoughtsDropped, SeqRange{from, p.slots[len(p.slots)-1].Seq})
	p.placeMessages()
	return true
}

// addQuotes appends the passages that are quoted before the message. If the text of one is
// missing, the thoughts behind them are lost in any case, and none is quoted.
func (p *assembly) addQuotes(s Slot) {
	if s.Quotes == nil {
		return
	}
	quotes := make([]Passage, len(s.Quotes.Passages))
	for i, passage := range s.Quotes.Passages {
		q, ok := p.parts.Quotes[passage]
		if !ok {
			return
		}
		quotes[i] = q
	}
	m := p.newQuotes(quotes)
	if m.Tokens > s.Quotes.Tokens { // the texts have changed, or another session's numbers came in
		return
	}
	p.appendMessage(m)
}

// The instructions of a run are a system block, and another run has others. On a model that binds
// thoughts to their prompt (llm.Info.AppendsInstructions) they would change the prompt before all
// thoughts. There they are a system message among the others, behind the user's message of the
// run: only where they differ from those that the prompt already has. As long as a thought of the
// run's answers is sent, later prompts repeat the message. Its text is that of the run's options.

// RunInstructions are the instructions that a prompt appended for a run.
type RunInstructions struct {
	Run    core.RunID
	Tokens int // cl100k_base, of their message; 0 = none were appended
}

// The texts of the message.
const (
	instructionsTitle     = "[Instructions from here on, in place of earlier ones that were added in this way:]\n"
	instructionsWithdrawn = "[The instructions that were added above no longer apply.]"
)

// instructionsText returns the text of the message.
func instructionsText(instructions string) string {
	if instructions == "" {
		return instructionsWithdrawn
	}
	return instructionsTitle + instructions
}

// addPending appends the instructions that wait for their place.
func (p *assembly) addPending() {
	if p.pending != nil {
		p.Messages, p.pending = append(p.Messages, *p.pending), nil
	}
}

// newInstructions returns the message with the instructions.
func (p *assembly) newInstructions(instructions string) PromptMessage {
	m := p.newMessage(llm.Message{Role: core.RoleSystem, Content: instructionsText(instructions)})
	m.Place = core.PlaceInstructions
	return m
}
