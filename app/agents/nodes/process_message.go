package nodes

import (
	"context"
	"fmt"

	"bobbin/app/agents/state"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
)

// profiler says how a session's agent is set up.
type profiler interface {
	Profile(ctx context.Context, session core.Session, model string) (compaction.Profile, error)
}

// sessionStore reads sessions.
type sessionStore interface {
	Get(ctx context.Context, scope core.Scope, id core.SessionID) (core.Session, error)
}

// MessageProcessor is the node process_message: it turns the accepted input into
// the user's message and finds the agent, the model and the tools that answer it.
type MessageProcessor struct {
	sessions sessionStore
	profiles profiler
}

// NewMessageProcessor returns the node.
func NewMessageProcessor(sessions sessionStore, profiles profiler) *MessageProcessor {
	return &MessageProcessor{sessions: sessions, profiles: profiles}
}

// Run does the node's work. Errors: ErrNotFound when the session, its agent or
// its model is gone.
func (n *MessageProcessor) Run(ctx context.Context, s state.AgentState) (state.AgentState, error) {
	session, err := n.sessions.Get(ctx, s.Run.Scope(), s.Run.SessionID)
	if err != nil {
		return s, fmt.Errorf("load session: %w", err)
	}
	accepted := session
	if s.Run.Agent != "" { // the session's may have been changed while the run was queued
		accepted.Agent = s.Run.Agent
	}
	s.Profile, err = n.profiles.Profile(ctx, accepted, s.Run.Model)
	if err != nil {
		return s, fmt.Errorf("set up agent: %w", err)
	}
	s.Session = session
	s.UserMessage = s.Run.UserMessage()
	s.Measures = state.Measured(s.Run)
	return s, nil
}
