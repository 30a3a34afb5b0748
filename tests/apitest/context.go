package apitest

import (
	"context"

	"bobbin/app/core"
)

// Where records the call.
func (c Chat) Where(ctx context.Context, tenant core.Tenant, id core.SessionID, message core.MessageID) (core.MessageLocation, error) {
	return core.MessageLocation{}, c.recordCall(ctx, "Where", tenant, id, message)
}

// Turns records the call.
func (c Chat) Turns(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.ContextTurns, error) {
	return core.ContextTurns{}, c.recordCall(ctx, "Turns", tenant, id)
}

// DryRun records the call.
func (c Chat) DryRun(ctx context.Context, tenant core.Tenant, id core.SessionID, ask core.PlanPreview) (core.ContextPlan, error) {
	return core.ContextPlan{}, c.recordCall(ctx, "DryRun", tenant, id, ask)
}

// EditSummary answers Backend.Summary with the new text, as its next version.
func (c Chat) EditSummary(ctx context.Context, tenant core.Tenant, id core.SessionID, edit core.SummaryEdit) (core.Summary, error) {
	s := c.Summary
	s.Version, s.Content, s.Strategy, s.Trigger, s.Model = s.Version+1, edit.Content, core.StrategyEdited, core.TriggerManualEdit, ""
	s.Note, s.MessagesAdded, s.Duration = "edited from version 1", 0, 0
	return s, c.recordCall(ctx, "EditSummary", tenant, id, edit)
}

// Restore answers Backend.Session.
func (c Chat) Restore(ctx context.Context, tenant core.Tenant, id core.SessionID, version int) (core.Session, error) {
	return c.Session, c.recordCall(ctx, "Restore", tenant, id, version)
}

// Diff records the call.
func (c Chat) Diff(ctx context.Context, tenant core.Tenant, id core.SessionID, version, against int) (core.SummaryDiff, error) {
	return core.SummaryDiff{}, c.recordCall(ctx, "Diff", tenant, id, version, against)
}

// Instruction answers for every method of standing instructions.
func Instruction() core.StandingInstruction {
	return core.StandingInstruction{
		ID: InstructionID, SessionID: SessionID, MessageID: UserID, Seq: 1, Text: "Always answer in Dutch.", Language: "en",
		State: core.InstructionStands, CreatedAt: Time(),
	}
}

// StandingInstructions answers one instruction.
func (c Chat) StandingInstructions(ctx context.Context, tenant core.Tenant, id core.SessionID, q core.PageQuery) (core.Page[core.StandingInstruction], error) {
	return core.Page[core.StandingInstruction]{Items: []core.StandingInstruction{Instruction()}}, c.recordCall(ctx, "StandingInstructions", tenant, id, q)
}

// AddInstruction answers an instruction with the text.
func (c Chat) AddInstruction(ctx context.Context, tenant core.Tenant, session core.SessionID, text string) (core.StandingInstruction, error) {
	i := Instruction()
	i.MessageID, i.Text = "", text
	return i, c.recordCall(ctx, "AddInstruction", tenant, session, text)
}

// EditInstruction answers the instruction with the text.
func (c Chat) EditInstruction(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.InstructionID, text string) (core.StandingInstruction, error) {
	i, at := Instruction(), Time()
	i.ID, i.Text, i.EditedAt = id, text, &at
	return i, c.recordCall(ctx, "EditInstruction", tenant, session, id, text)
}

// RemoveInstruction answers nothing.
func (c Chat) RemoveInstruction(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.InstructionID) error {
	return c.recordCall(ctx, "RemoveInstruction", tenant, session, id)
}
