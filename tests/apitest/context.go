package apitest

import (
	"context"

	"bobbin/app/core"
)

// Where answers that the summary covers the message.
func (c Chat) Where(ctx context.Context, tenant core.Tenant, id core.SessionID, message core.MessageID) (core.MessageLocation, error) {
	return core.MessageLocation{
		MessageID: message, Seq: 1, Role: core.RoleUser, Placement: core.PlaceCovered,
		Reason:     "Version 2 of the summary covers it and replaces it in the prompt; version 1 was the first to cover it.",
		TokenCount: 5, WholeTokens: 6, Model: "demo", SummaryVersion: 2, FirstVersion: 1,
	}, c.recordCall(ctx, "Where", tenant, id, message)
}

// Turns answers two ranges and a turn.
func (c Chat) Turns(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.ContextTurns, error) {
	return core.ContextTurns{
		Ranges: []core.PlacedRange{{FromSeq: 1, ThroughSeq: 1, Place: core.PlaceCovered, SummaryVersion: 2}, {FromSeq: 2, ThroughSeq: 2, Place: core.PlaceVerbatim}},
		Turns: []core.ContextTurn{{
			RunID: RunID, Seq: 1, At: Time(), Used: 300, Usable: 6144, Trigger: 6000, Sections: map[string]int{"system": 100, "tail": 200}, SummaryVersion: 2, Summarized: true, Without: 900,
		}},
		TurnsOmitted: 3,
	}, c.recordCall(ctx, "Turns", tenant, id)
}

// DryRun answers Backend.Report with no message after the summary.
func (c Chat) DryRun(ctx context.Context, tenant core.Tenant, id core.SessionID, ask core.PlanPreview) (core.ContextPlan, error) {
	return core.ContextPlan{
		Tokens: 300, Context: c.Report,
		Summarize: &core.PlannedSummary{When: core.WhenNow, FromID: UserID, FromSeq: 1, ThroughID: AnswerID, ThroughSeq: 2, Messages: 2, Tokens: 10, MaxTokens: 5, Trigger: "share"},
		Floor:     &core.ContextFloor{Culprit: "message", Tokens: 300, Usable: 200, Detail: "the prompt cannot be made small enough"},
	}, c.recordCall(ctx, "DryRun", tenant, id, ask)
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

// Diff answers one change of each kind.
func (c Chat) Diff(ctx context.Context, tenant core.Tenant, id core.SessionID, version, against int) (core.SummaryDiff, error) {
	return core.SummaryDiff{Version: version, Against: max(against, 0), Added: 1, Removed: 1, Equal: 1, Ops: []core.DiffOp{
		{Op: core.DiffEqual, Pieces: []string{"They greeted each other. "}}, {Op: core.DiffRemoved, Pieces: []string{"It rained."}}, {Op: core.DiffAdded, Pieces: []string{"It snowed."}},
	}}, c.recordCall(ctx, "Diff", tenant, id, version, against)
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
