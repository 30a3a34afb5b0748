package chat

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/standing"
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

// StandingInstructions returns a page of what users set for the whole conversation, with
// whether it stands, the newest first. Errors: ErrInvalid for a cursor of another list,
// ErrNotFound.
func (s *Service) StandingInstructions(ctx context.Context, tenant core.Tenant, id core.SessionID, q core.PageQuery) (core.Page[core.StandingInstruction], error) {
	all, err := s.Inspector.StandingInstructions(ctx, tenant, id)
	if err != nil {
		return core.Page[core.StandingInstruction]{}, err
	}
	slices.Reverse(all)
	if q.Cursor != "" {
		last := indexOfInstruction(all, core.InstructionID(q.Cursor))
		if last < 0 {
			return core.Page[core.StandingInstruction]{}, core.Errorf(core.ErrInvalid, "cursor: it is not of this list, or its instruction was removed; begin again without it")
		}
		all = all[last+1:]
	}
	limit := min(cmp.Or(max(q.Limit, 0), core.DefaultPageLimit), core.MaxPageLimit)
	page := core.Page[core.StandingInstruction]{Items: append([]core.StandingInstruction{}, all[:min(limit, len(all))]...)}
	if len(all) > limit {
		page.NextCursor = new(string(page.Items[limit-1].ID))
	}
	return page, nil
}

// AddInstruction adds a standing instruction by hand and returns it. Errors: ErrInvalid for
// a text that is empty or too long, ErrUnprocessable when the session has too many of them,
// ErrNotFound.
func (s *Service) AddInstruction(ctx context.Context, tenant core.Tenant, session core.SessionID, text string) (core.StandingInstruction, error) {
	in, err := s.newInstruction(ctx, tenant, session, text)
	if err != nil {
		return core.StandingInstruction{}, err
	}
	added, err := s.Instructions.Add(ctx, tenant, in)
	added.State = core.InstructionStands
	return added, err
}

// EditInstruction replaces the text of a standing instruction and returns it. Errors:
// ErrInvalid as for AddInstruction, ErrUnprocessable for one that no longer stands,
// ErrNotFound.
func (s *Service) EditInstruction(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.InstructionID, text string) (core.StandingInstruction, error) {
	in, err := s.newInstruction(ctx, tenant, session, text)
	if err != nil {
		return core.StandingInstruction{}, err
	}
	all, err := s.Inspector.StandingInstructions(ctx, tenant, session)
	if err != nil {
		return core.StandingInstruction{}, err
	}
	if n := indexOfInstruction(all, id); n >= 0 && all[n].State != core.InstructionStands {
		return core.StandingInstruction{}, core.Errorf(core.ErrUnprocessable, "the instruction no longer stands, it was %s: add a new one", all[n].State)
	}
	edited, err := s.Instructions.Edit(ctx, tenant, id, in)
	edited.State = core.InstructionStands
	return edited, err
}

func indexOfInstruction(all []core.StandingInstruction, id core.InstructionID) int {
	return slices.IndexFunc(all, func(i core.StandingInstruction) bool { return i.ID == id })
}

// newInstruction returns the instruction with the text in one line, for which there must be room.
func (s *Service) newInstruction(ctx context.Context, tenant core.Tenant, session core.SessionID, text string) (core.NewInstruction, error) {
	var f faults
	text = strings.Join(strings.Fields(core.CleanText(text)), " ")
	switch n := utf8.RuneCountInString(text); {
	case n == 0:
		f.Add("text", "is empty")
	case n > core.MaxInstructionText:
		f.Add("text", "has %d characters, at most %d are allowed", n, core.MaxInstructionText)
	}
	if err := f.Err(); err != nil {
		return core.NewInstruction{}, err
	}
	described := standing.Describe(text)
	in := core.NewInstruction{SessionID: session, Text: text, Language: described.Language, Topic: described.Topic}
	return in, s.Stored.Admit(ctx, tenant, core.StandingInstruction{Text: text}.StoredBytes())
}
