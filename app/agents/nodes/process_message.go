package nodes

import (
	"bobbin/app/core"
	"context"
	"encoding/json"
	"fmt"
)

// ProcessMessage is the node process_message: it turns the accepted input into
// the user's message and finds the agent, the model and the tools that answer it. The run keeps these
// tools, whatever becomes of them later.
type ProcessMessage struct{ Deps }

// Run does the node's work. Errors: ErrNotFound when the session, its agent or its model is gone.
func (n *ProcessMessage) Run(ctx context.Context, s AgentState) (AgentState, error) {
	var err error
	if s.Session.ID == "" {
		if s.Session, err = n.Sessions.Get(ctx, s.Run.Tenant(), s.Run.SessionID); err != nil {
			return s, fmt.Errorf("load session: %w", err)
		}
	}
	accepted := s.Session
	if s.Run.Agent != "" { // the session's may have been changed while the run was queued
		accepted.Agent = s.Run.Agent
	}
	s.Profile, err = n.LoadProfile(ctx, accepted, s.Run.Model)
	if err != nil {
		return s, fmt.Errorf("set up agent: %w", err)
	}
	s.Profile = s.Profile.WithOptions(s.Run.Options)
	n.Titler.Begin(s.Session, s.Run)
	if s.UserMessage.ID == "" {
		s.UserMessage = s.Run.UserMessage()
	}
	var earlier core.ContextReport // what an earlier attempt of the run has measured
	if len(s.Run.Context) > 0 && json.Unmarshal(s.Run.Context, &earlier) == nil {
		s.Measures = Measures{Overflows: earlier.Overflows, Rungs: earlier.Rungs, Reasons: earlier.Reasons}
	}
	return s, nil
}
