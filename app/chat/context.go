package chat

import (
	"context"

	"bobbin/app/core"
)

// Context says what the session's next prompt will be made of, and how near a
// summarization is. It changes nothing.
func (s *Service) Context(ctx context.Context, scope core.Scope, id core.SessionID) (core.ContextReport, error) {
	return s.keeper.Report(ctx, scope, id)
}

// Prompt returns the exact prompt that would be sent now. It changes nothing.
func (s *Service) Prompt(ctx context.Context, scope core.Scope, id core.SessionID) (core.PromptView, error) {
	return s.keeper.Prompt(ctx, scope, id)
}

// Summarize makes a summary now and returns the new version. Focus is what it is
// to keep above all; empty = nothing. Errors: ErrConflict while another one of the
// session is being made, ErrUnprocessable when there is nothing to summarize,
// ErrInvalid for a focus that is too long, ErrNotFound.
func (s *Service) Summarize(ctx context.Context, scope core.Scope, id core.SessionID, focus string) (core.Summary, error) {
	var f faults
	focus = f.text("focus", focus, s.limits.Focus)
	if err := f.err(); err != nil {
		return core.Summary{}, err
	}
	return s.keeper.Summarize(ctx, scope, id, focus)
}
