package nodes

import (
	"context"
	"fmt"

	"bobbin/app/core"
)

// SaveUserMessage is the node save_user_message: after it the user's message is
// in the log, once. Normally the transaction that claimed the run has put it
// there already and nothing is written.
type SaveUserMessage struct{ Deps }

// Run does the node's work.
func (n *SaveUserMessage) Run(ctx context.Context, s AgentState) (AgentState, error) {
	if s.UserMessage.Seq > 0 {
		return s, nil
	}
	w := newWrite(s)
	w.Messages = []core.Message{s.UserMessage}
	written, err := n.Journal.Append(ctx, w)
	if err != nil {
		return s, fmt.Errorf("save user message: %w", err)
	}
	s.UserMessage, s.Planned = written.Messages[0], nil
	return s, nil
}
