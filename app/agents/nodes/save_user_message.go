package nodes

import (
	"context"
	"fmt"

	"bobbin/app/agents/state"
	"bobbin/app/core"
)

// UserMessageSaver is the node save_user_message: after it the user's message is
// in the log, once. Normally the transaction that claimed the run has put it
// there already and nothing is written.
type UserMessageSaver struct {
	journal journal
}

// NewUserMessageSaver returns the node.
func NewUserMessageSaver(journal journal) *UserMessageSaver {
	return &UserMessageSaver{journal: journal}
}

// Run does the node's work.
func (n *UserMessageSaver) Run(ctx context.Context, s state.AgentState) (state.AgentState, error) {
	if s.UserMessage.Seq > 0 {
		return s, nil
	}
	w := write(s)
	w.Messages = []core.Message{s.UserMessage}
	written, err := n.journal.Append(ctx, w)
	if err != nil {
		return s, fmt.Errorf("save user message: %w", err)
	}
	s.UserMessage = written.Messages[0]
	return s, nil
}
