package handlers

import (
	"context"
	"errors"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/chat"
	"bobbin/app/core"
)

func (h Native) registerContext(r Router) {
	bind(r, ops.GetContext, func(ctx context.Context, tenant core.Tenant, in ops.InSession) (core.ContextReport, error) {
		return h.Chat.Inspector.Report(ctx, tenant, in.SessionID)
	})
	bind(r, ops.GetContextTurns, func(ctx context.Context, tenant core.Tenant, in ops.InSession) (core.ContextTurns, error) {
		return h.Chat.Inspector.Turns(ctx, tenant, in.SessionID)
	})
	bind(r, ops.GetPrompt, func(ctx context.Context, tenant core.Tenant, in ops.InSession) (core.PromptView, error) {
		return h.Chat.Inspector.Prompt(ctx, tenant, in.SessionID, core.PlanPreview{})
	})
	bind(r, ops.WhereIsMessage, func(ctx context.Context, tenant core.Tenant, in ops.InMessage) (core.MessageLocation, error) {
		return h.Chat.Inspector.Where(ctx, tenant, in.SessionID, in.MessageID)
	})
	bind(r, ops.PlanContext, func(ctx context.Context, tenant core.Tenant, in ops.Plan) (core.ContextPlan, error) {
		in.PlanPreview.Parts = partsOf(in.Parts)
		return h.Chat.DryRun(ctx, tenant, in.SessionID, in.PlanPreview)
	})
	bind(r, ops.ListStandingInstructions, func(ctx context.Context, tenant core.Tenant, in ops.SessionPage) (core.Page[core.StandingInstruction], error) {
		return h.Chat.StandingInstructions(ctx, tenant, in.SessionID, in.PageQuery)
	})
	bind(r, ops.AddStandingInstruction, func(ctx context.Context, tenant core.Tenant, in ops.NewInstruction) (core.StandingInstruction, error) {
		return h.Chat.AddInstruction(ctx, tenant, in.SessionID, in.Text)
	})
	bind(r, ops.EditStandingInstruction, func(ctx context.Context, tenant core.Tenant, in ops.InstructionEdit) (core.StandingInstruction, error) {
		return h.Chat.EditInstruction(ctx, tenant, in.SessionID, in.InstructionID, in.Text)
	})
	bindDone(r, ops.RemoveStandingInstruction, func(ctx context.Context, tenant core.Tenant, in ops.InInstruction) error {
		return h.Chat.Instructions.Remove(ctx, tenant, in.SessionID, in.InstructionID)
	})
}

func (h Native) registerSummaries(r Router) {
	bind(r, ops.SummarizeSession, func(ctx context.Context, _ core.Tenant, in ops.Summarize) (core.Summary, error) {
		held, err := h.Streams.acquireSlot(ctx)
		if err != nil {
			return core.Summary{}, err
		}
		defer held.Release()
		return SummarizeWithin(ctx, h.Streams.Wait, h.Chat, in.SessionID, in.Focus)
	})
	bind(r, ops.ListSummaries, listOf(h, h.Summaries.List))
	bind(r, ops.GetSummary, func(ctx context.Context, tenant core.Tenant, in ops.InSummary) (core.Summary, error) {
		if _, err := h.Sessions.Get(ctx, tenant, in.SessionID); err != nil {
			return core.Summary{}, err
		}
		return h.Summaries.Get(ctx, tenant, in.SessionID, in.Version)
	})
	bind(r, ops.DiffSummary, func(ctx context.Context, tenant core.Tenant, in ops.SummaryDiff) (core.SummaryDiff, error) {
		against := -1 // the previous one
		if in.Against != nil {
			against = *in.Against
		}
		return h.Chat.Inspector.Diff(ctx, tenant, in.SessionID, in.Version, against)
	})
	bind(r, ops.EditSummary, func(ctx context.Context, tenant core.Tenant, in ops.SummaryEdit) (core.Summary, error) {
		return h.Chat.EditSummary(ctx, tenant, in.SessionID, in.SummaryEdit)
	})
	bind(r, ops.RestoreSummary, func(ctx context.Context, tenant core.Tenant, in ops.SummaryRestore) (core.Session, error) {
		return h.Chat.Restore(ctx, tenant, in.SessionID, in.Version)
	})
}

// listOf returns a function that answers a page of what a session has, from a list that does not
// look whether there is the session.
func listOf[T any](h Native, list func(context.Context, core.Tenant, core.SessionID, core.PageQuery) (core.Page[T], error)) func(context.Context, core.Tenant, ops.SessionPage) (core.Page[T], error) {
	return func(ctx context.Context, tenant core.Tenant, in ops.SessionPage) (core.Page[T], error) {
		if _, err := h.Sessions.Get(ctx, tenant, in.SessionID); err != nil {
			return core.Page[T]{}, err
		}
		return list(ctx, tenant, in.SessionID, in.PageQuery)
	}
}

// SummarizeWithin creates a summary of the caller's session, within the time limit.
func SummarizeWithin(ctx context.Context, limit time.Duration, service *chat.Service, id core.SessionID, focus string) (core.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	caller, _ := core.IdentityFrom(ctx)
	summary, err := service.Summarize(ctx, caller.Tenant(), id, focus)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		err = &core.Error{Kind: core.ErrTimeout, Message: "the summary took too long; the session is unchanged", Err: err}
	}
	return summary, err
}
