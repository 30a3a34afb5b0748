package apitest

import (
	"context"

	"bobbin/app/core"
)

// Where answers that the message is covered.
func (c Chat) Where(ctx context.Context, scope core.Scope, id core.SessionID, message core.MessageID) (core.MessageWhere, error) {
	return core.MessageWhere{
		MessageID: message, Seq: 1, Role: core.RoleUser, Placement: core.PlaceCovered,
		Reason:     "Version 2 of the summary covers it, which stands in the prompt in its place; version 1 was the first that did.",
		TokenCount: 5, WholeTokens: 6, Model: "demo", SummaryVersion: 2, FirstVersion: 1,
	}, c.called(ctx, "Where", scope, id, message)
}

// DryRun answers Backend.Report, and that nothing fits after the summary.
func (c Chat) DryRun(ctx context.Context, scope core.Scope, id core.SessionID, ask core.DryRun) (core.ContextPlan, error) {
	return core.ContextPlan{
		Tokens: 300, Context: c.Report,
		Summarize: &core.PlannedSummary{When: core.WhenNow, FromID: UserID, FromSeq: 1, ThroughID: AnswerID, ThroughSeq: 2, Messages: 2, Tokens: 10, MaxTokens: 5, Trigger: "share"},
		Floor:     &core.ContextFloor{Culprit: "message", Tokens: 300, Usable: 200, Detail: "the prompt cannot be made small enough"},
	}, c.called(ctx, "DryRun", scope, id, ask)
}

// EditSummary answers Backend.Summary with the words given, as its next version.
func (c Chat) EditSummary(ctx context.Context, scope core.Scope, id core.SessionID, edit core.SummaryEdit) (core.Summary, error) {
	s := c.Summary
	s.Version, s.Content, s.Strategy, s.Trigger, s.Model = s.Version+1, edit.Content, core.StrategyEdited, core.TriggerManualEdit, ""
	s.Note, s.MessagesAdded, s.Duration = "edited from version 1", 0, 0
	return s, c.called(ctx, "EditSummary", scope, id, edit)
}

// RestoreSummary answers Backend.Session.
func (c Chat) RestoreSummary(ctx context.Context, scope core.Scope, id core.SessionID, version int) (core.Session, error) {
	return c.Session, c.called(ctx, "RestoreSummary", scope, id, version)
}

// DiffSummary answers one piece of each kind.
func (c Chat) DiffSummary(ctx context.Context, scope core.Scope, id core.SessionID, version, against int) (core.SummaryDiff, error) {
	return core.SummaryDiff{Version: version, Against: max(against, 0), Added: 1, Removed: 1, Equal: 1, Ops: []core.DiffOp{
		{Op: core.DiffEqual, Pieces: []string{"They greeted each other. "}}, {Op: core.DiffRemoved, Pieces: []string{"It rained."}}, {Op: core.DiffAdded, Pieces: []string{"It snowed."}},
	}}, c.called(ctx, "DiffSummary", scope, id, version, against)
}
