package nodes

import (
	"context"
	"fmt"

	"bobbin/app/agents/state"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
)

// messageStore reads the message log.
type messageStore interface {
	GetMessagesAfter(ctx context.Context, scope core.Scope, id core.SessionID, after core.MessageID) ([]core.Message, error)
}

// ContextRetriever is the node retrieve_context: it loads the session's summary and
// ALL messages after it (W3, W6), and compacts them where the plan says so. After
// a crash it also finds what the run has already added to the log.
type ContextRetriever struct {
	messages messageStore
	keeper   contextKeeper
}

// NewContextRetriever returns the node.
func NewContextRetriever(messages messageStore, keeper contextKeeper) *ContextRetriever {
	return &ContextRetriever{messages: messages, keeper: keeper}
}

// Run does the node's work. Errors: ErrContextFloor when the message cannot be
// sent to this model at all.
func (n *ContextRetriever) Run(ctx context.Context, s state.AgentState) (state.AgentState, error) {
	var cursor core.MessageID
	if s.Session.SummaryThroughID != nil {
		cursor = *s.Session.SummaryThroughID
	}
	all, err := n.messages.GetMessagesAfter(ctx, s.Run.Scope(), s.Session.ID, cursor)
	if err != nil {
		return s, fmt.Errorf("load messages: %w", err)
	}
	s = split(s, all)
	turn, d, err := n.keeper.Fit(ctx, s.Turn())
	if err != nil {
		return s, fmt.Errorf("fit context: %w", err)
	}
	return s.Fitted(turn, d), nil
}

// split tells the conversation before the run from what the run has said so far:
// its own messages carry its id, so that messages of others stay out of it.
func split(s state.AgentState, all []core.Message) state.AgentState {
	for _, m := range all {
		if m.ID == s.UserMessage.ID {
			s.UserMessage = m
		}
	}
	s.RunMessages = nil
	if s.UserMessage.Seq > 0 {
		for _, m := range all {
			if m.Seq > s.UserMessage.Seq && m.RunID == s.Run.ID {
				s.RunMessages = append(s.RunMessages, m)
			}
		}
	}
	s.ContextMessages = compaction.BeforeRun(all, []core.Message{s.UserMessage})
	return s
}
