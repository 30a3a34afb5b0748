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

// repeatsInstructions reports whether the prompt has instructions of earlier runs.
func (p *planner) repeatsInstructions() bool {
	return slices.ContainsFunc(p.history, func(s Slot) bool { return s.Repeated.Tokens > 0 })
}

// repeatInstructions adds the instructions that the prompt had behind the message, if their text is there: else
// the thoughts behind them are lost.
func (p *assembly) repeatInstructions(s Slot) {
	text, known := p.parts.Repeated[s.Repeated.Run]
	if s.Repeated.Tokens == 0 || !known {
		return
	}
	if m := p.newInstructions(text); m.Tokens <= s.Repeated.Tokens {
		m.Section, p.pending, p.instructions = p.section, &m, text
	}
}

// addInstructions adds the instructions of the run where they differ from those that the prompt has.
func (p *assembly) addInstructions(d Decision) {
	if len(d.Run) == 0 || p.parts.Instructions == p.instructions || !p.parts.Model.AppendsInstructions() {
		return
	}
	m := p.newInstructions(p.parts.Instructions)
	m.Section, p.pending, p.Sent.Instructions = SectionSystem, &m, m.Tokens
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
