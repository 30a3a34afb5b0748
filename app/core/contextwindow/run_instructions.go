package contextwindow

import (
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

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

// instructionsBlock returns how the run's instructions are sent; empty = the plan adds what may be
// sent without any (withdrawnTokens).
func (p Parts) instructionsBlock() string {
	if p.Instructions != "" && p.Model.AppendsInstructions() {
		return instructionsText(p.Instructions)
	}
	return p.Instructions
}

// addInstructions adds the instructions that the prompt of the message's thought had.
func (it *Item) addInstructions(m core.Message, thought core.Part, model llm.Info) {
	if thought.Instructions > 0 && m.RunID != "" && model.AppendsInstructions() {
		it.Appended = RunInstructions{m.RunID, thought.Instructions}
	}
}

// repeatsInstructions reports whether the prompt has instructions of earlier runs.
func (p *planner) repeatsInstructions() bool {
	return slices.ContainsFunc(p.history, func(s Slot) bool { return s.Repeated.Tokens > 0 })
}

// addInstructions inserts the instructions of earlier runs, and appends those of the run where they
// differ.
func (p *assembly) addInstructions(d Decision) {
	if !p.parts.Model.AppendsInstructions() {
		return
	}
	current, from := "", 0
	for _, s := range d.History {
		if s.Repeated.Tokens == 0 {
			continue
		}
		text, known := p.parts.Repeated[s.Repeated.Run]
		m := p.newInstructions(text)
		i := slices.IndexFunc(p.Messages[from:], func(m PromptMessage) bool { return m.ID == s.ID })
		if !known || i < 0 || m.Tokens > s.Repeated.Tokens {
			continue // the thoughts behind them are lost
		}
		m.Quotes = true
		from = p.insertBeforeAnswer(from+i, m)
		p.Sent.Tail += m.Tokens
		p.runFrom++
		current = text
	}
	if len(d.Run) == 0 || p.parts.Instructions == current {
		return
	}
	m := p.newInstructions(p.parts.Instructions)
	p.insertBeforeAnswer(p.runFrom, m)
	p.Sent.System += m.Tokens
	p.Sent.Instructions = m.Tokens
}

// newInstructions returns the message with the instructions.
func (p *assembly) newInstructions(instructions string) PromptMessage {
	m := p.newMessage(llm.Message{Role: core.RoleSystem, Content: instructionsText(instructions)})
	m.Place = core.PlaceInstructions
	return m
}

// insertBeforeAnswer inserts a message before the first message of the assistant from an index on,
// or behind all: Anthropic takes a system message only between the user's and the assistant's. It
// returns the index.
func (p *assembly) insertBeforeAnswer(i int, m PromptMessage) int {
	for i < len(p.Messages) && p.Messages[i].Role != core.RoleAssistant {
		i++
	}
	p.Messages = slices.Insert(p.Messages, i, m)
	return i
}
