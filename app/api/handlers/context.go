package handlers

import (
	"context"
	"errors"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

func (h Native) getContext(c *gin.Context, in ops.InSession) (core.ContextReport, error) {
	return h.Chat.Context(c.Request.Context(), scopeOf(c), in.SessionID)
}

func (h Native) getPrompt(c *gin.Context, in ops.InSession) (core.PromptView, error) {
	return h.Chat.Prompt(c.Request.Context(), scopeOf(c), in.SessionID)
}

func (h Native) whereIsMessage(c *gin.Context, in ops.InMessage) (core.MessageLocation, error) {
	return h.Chat.Where(c.Request.Context(), scopeOf(c), in.SessionID, in.MessageID)
}

func (h Native) getContextTurns(c *gin.Context, in ops.InSession) (core.ContextTurns, error) {
	return h.Chat.Turns(c.Request.Context(), scopeOf(c), in.SessionID)
}

func (h Native) planContext(c *gin.Context, in ops.Plan) (core.ContextPlan, error) {
	return h.Chat.DryRun(c.Request.Context(), scopeOf(c), in.SessionID, in.PlanPreview)
}

// summarize creates a summary now. It holds the slot of a request that waits.
func (h Native) summarize(c *gin.Context, in ops.Summarize) (core.Summary, error) {
	held, err := h.Streams.acquireSlot(c)
	if err != nil {
		return core.Summary{}, err
	}
	defer h.Streams.releaseSlot(held)
	return SummarizeWithin(c.Request.Context(), h.Streams.limits.Wait, h.Chat, in.SessionID, in.Focus)
}

// SummarizeWithin creates a summary of the caller's session, within the time limit.
func SummarizeWithin(ctx context.Context, limit time.Duration, chat chatService, id core.SessionID, focus string) (core.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	caller, _ := core.IdentityFrom(ctx)
	summary, err := chat.Summarize(ctx, caller.Tenant(), id, focus)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		err = &core.Error{Kind: core.ErrTimeout, Message: "the summary took too long; the session is unchanged", Err: err}
	}
	return summary, err
}

func (h Native) listSummaries(c *gin.Context, in ops.SessionPage) (core.Page[core.Summary], error) {
	if _, err := h.findSession(c, in.SessionID); err != nil {
		return core.Page[core.Summary]{}, err
	}
	return h.Summaries.List(c.Request.Context(), scopeOf(c), in.SessionID, in.PageQuery)
}

func (h Native) getSummary(c *gin.Context, in ops.InSummary) (core.Summary, error) {
	if _, err := h.findSession(c, in.SessionID); err != nil {
		return core.Summary{}, err
	}
	return h.Summaries.Get(c.Request.Context(), scopeOf(c), in.SessionID, in.Version)
}

func (h Native) diffSummary(c *gin.Context, in ops.SummaryDiff) (core.SummaryDiff, error) {
	against := -1 // the previous one
	if in.Against != nil {
		against = *in.Against
	}
	return h.Chat.DiffSummary(c.Request.Context(), scopeOf(c), in.SessionID, in.Version, against)
}

func (h Native) editSummary(c *gin.Context, in ops.SummaryEdit) (core.Summary, error) {
	return h.Chat.EditSummary(c.Request.Context(), scopeOf(c), in.SessionID, in.SummaryEdit)
}

func (h Native) restoreSummary(c *gin.Context, in ops.SummaryRestore) (core.Session, error) {
	return h.Chat.RestoreSummary(c.Request.Context(), scopeOf(c), in.SessionID, in.Version)
}

func (h Native) listInstructions(c *gin.Context, in ops.SessionPage) (core.Page[core.StandingInstruction], error) {
	return h.Chat.StandingInstructions(c.Request.Context(), scopeOf(c), in.SessionID, in.PageQuery)
}

func (h Native) addInstruction(c *gin.Context, in ops.NewInstruction) (core.StandingInstruction, error) {
	return h.Chat.AddInstruction(c.Request.Context(), scopeOf(c), in.SessionID, in.Text)
}

func (h Native) editInstruction(c *gin.Context, in ops.InstructionEdit) (core.StandingInstruction, error) {
	return h.Chat.EditInstruction(c.Request.Context(), scopeOf(c), in.SessionID, in.InstructionID, in.Text)
}

func (h Native) removeInstruction(c *gin.Context, in ops.InInstruction) (ops.Nothing, error) {
	return ops.Nothing{}, h.Chat.RemoveInstruction(c.Request.Context(), scopeOf(c), in.SessionID, in.InstructionID)
}
