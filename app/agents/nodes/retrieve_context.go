package nodes

import (
	"context"
	"fmt"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
)

// RetrieveContext is the node retrieve_context: it loads the session's summary and
// ALL messages after it, and compacts them where the plan says so. After
// a crash it also finds what the run has already added to the log. The texts of old
// messages stay in storage where there are many; the compactor loads those it needs.
type RetrieveContext struct{ Deps }

// Run does the node's work. Errors: ErrContextFloor when the message cannot be sent to this model.
func (n *RetrieveContext) Run(ctx context.Context, s AgentState) (AgentState, error) {
	t, ok := n.Tails.takeTail(s)
	if !ok {
		var err error
		if t.messages, err = n.Messages.GetMessagesAfter(ctx, s.Run.Tenant(), s.Session.ID, summaryCursor(s.Session)); err != nil {
			return s, fmt.Errorf("load messages: %w", err)
		}
		if t.pinned, err = n.Compactor.LoadPinned(ctx, s.Session); err != nil {
			return s, err
		}
	}
	all := t.messages
	s.Pinned, s.Work = t.pinned, t.work
	for _, m := range all {
		if m.ID == s.UserMessage.ID {
			s.UserMessage = m
		}
	}
	s.RunMessages = nil
	for _, m := range all { // what the run has said so far carries its id; messages of others stay out of it
		if s.UserMessage.Seq > 0 && m.Seq > s.UserMessage.Seq && m.RunID == s.Run.ID {
			s.RunMessages = append(s.RunMessages, m)
		}
	}
	s.History = compaction.BeforeRun(all, []core.Message{s.UserMessage})
	if len(s.OpenCalls()) > 0 {
		if err := n.loadCalls(ctx, s); err != nil {
			return s, err
		}
	}
	turn, d, err := n.Compactor.Fit(ctx, s.NextTurn())
	if err != nil {
		return s, fmt.Errorf("fit context: %w", err)
	}
	s = s.Fitted(turn, d)
	s.Planned = &Planned{Turn: turn, Decision: d}
	return s, nil
}

// loadCalls loads the arguments of the run's calls that wait for a result.
func (n *RetrieveContext) loadCalls(ctx context.Context, s AgentState) error {
	last := len(s.RunMessages) - 1
	for s.RunMessages[last].Role == core.RoleTool {
		last--
	}
	if s.RunMessages[last].Unloaded == 0 {
		return nil
	}
	found, err := n.Messages.GetMessages(ctx, s.Run.Tenant(), s.Session.ID, []core.MessageID{s.RunMessages[last].ID})
	if err == nil && len(found) == 0 {
		err = core.Errorf(core.ErrNotFound, "the message of the run's tool calls is gone")
	}
	if err != nil {
		return fmt.Errorf("load open tool calls: %w", err)
	}
	s.RunMessages[last] = found[0]
	return nil
}
