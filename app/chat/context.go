package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// Summarize makes a summary now and returns the new version. Focus is what it is
// to keep above all; empty = nothing. Errors: ErrConflict while another one of the
// session is being made, ErrUnprocessable when there is nothing to summarize,
// ErrInvalid for a focus that is too long, ErrNotFound.
func (s *Service) Summarize(ctx context.Context, tenant core.Tenant, id core.SessionID, focus string) (core.Summary, error) {
	var f faults
	focus = f.Text("focus", focus, maxFocus)
	if err := f.Err(); err != nil {
		return core.Summary{}, err
	}
	if err := s.Stored.Admit(ctx, tenant, core.StoredRow); err != nil {
		return core.Summary{}, err
	}
	return s.Inspector.Summarize(ctx, tenant, id, focus)
}

// DryRun plans the session's next prompt under other conditions. It changes nothing.
// Errors: ErrInvalid for an agent, a model or a policy that does not exist, ErrTooLarge for a
// text that is longer than a message may be, ErrNotFound.
func (s *Service) DryRun(ctx context.Context, tenant core.Tenant, id core.SessionID, ask core.PlanPreview) (core.ContextPlan, error) {
	content, err := s.limitContent("message", ask.Content)
	if err != nil {
		return core.ContextPlan{}, err
	}
	var f faults
	if ask.Agent != "" { // empty is the session's
		s.checkAgent(&f, ask.Agent)
	}
	s.checkModel(&f, ask.Model)
	if known := contextwindow.PresetNames(); ask.Policy != "" && !slices.Contains(known, ask.Policy) { // empty is the agent's
		name, near := core.Clip(ask.Policy, 100), ""
		if n := core.Nearest(name, known); n != "" {
			near = fmt.Sprintf(" (did you mean %s?)", n)
		}
		f.Add("policy", "%q does not exist%s; the policies are %s", name, near, strings.Join(known, ", "))
	}
	if err := f.Err(); err != nil {
		return core.ContextPlan{}, err
	}
	if len(ask.Parts) > 0 {
		if ask.Parts, err = s.Files.Attach(ctx, tenant, ask.Parts); err != nil {
			return core.ContextPlan{}, err
		}
	}
	ask.Content, ask.Tokens = content, s.Counter.Message(core.Message{Role: core.RoleUser, Content: content, Parts: ask.Parts})
	return s.Inspector.DryRun(ctx, tenant, id, ask)
}

// Restore makes an earlier version of the summary the one in use, as a new version; 0 is none.
// Errors are those of compaction.Inspector.Restore.
func (s *Service) Restore(ctx context.Context, tenant core.Tenant, id core.SessionID, version int) (core.Session, error) {
	if version != 0 {
		earlier, err := s.Summaries.Get(ctx, tenant, id, version)
		if err == nil {
			err = s.Stored.Admit(ctx, tenant, earlier.StoredBytes())
		}
		if err != nil {
			return core.Session{}, err
		}
	}
	return s.Inspector.Restore(ctx, tenant, id, version)
}

// EditSummary replaces the words of the session's summary and returns the new
// version. Errors: ErrInvalid for a text that is empty or too long, ErrUnprocessable
// when there is no summary, ErrConflict when another version is in use, ErrNotFound.
func (s *Service) EditSummary(ctx context.Context, tenant core.Tenant, id core.SessionID, edit core.SummaryEdit) (core.Summary, error) {
	content, err := s.limitContent("summary", edit.Content)
	if err == nil {
		err = s.Stored.Admit(ctx, tenant, int64(core.StoredRow+len(content)))
	}
	if err != nil {
		return core.Summary{}, err
	}
	edit.Content = content
	return s.Inspector.Edit(ctx, tenant, id, edit)
}
