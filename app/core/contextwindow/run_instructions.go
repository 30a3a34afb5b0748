package contextwindow

import (
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
