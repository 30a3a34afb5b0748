package chat

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/standing"
)

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

// RemoveInstruction removes a standing instruction. The message in which it was recognized
// stays. It may be repeated for one of a message.
func (s *Service) RemoveInstruction(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.InstructionID) error {
	return s.Instructions.Remove(ctx, tenant, session, id)
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
