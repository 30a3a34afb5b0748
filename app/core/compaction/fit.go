package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// nearLimit is the share of the usable tokens from which a prompt counts as near its limit.
const nearLimit = 0.9

// Fit plans the turn's prompt and compacts until it fits. It returns the decision and the
// resulting turn: a summary moves messages out of History.
//
// Errors: ErrContextFloor when what cannot be shrunk does not fit; the context's own error
// when ctx ends; storage errors. A failed summarizer is not an error: a summary without a
// model replaces it.
func (k *Compactor) Fit(ctx context.Context, t Turn) (Turn, contextwindow.Decision, error) {
	var p plan
	t, err := k.withSetups(ctx, t)
	if err == nil {
		t, p, err = k.fitTurn(ctx, t)
	}
	if err == nil {
		t, p = k.withRecalled(ctx, t, p)
		t.Shown, t.room = p.d.ShownSeqs(), p.d.Room
	}
	d := p.d
	if err == nil {
		if !t.Trial {
			t = k.recordWarning(ctx, t, d)
		}
		t, err = k.withNamedTexts(ctx, t, d)
	}
	k.Observer.Fitted(ctx, t, d, err)
	return t, d, err
}

// recordWarning notifies watchers of what a prompt does not show: that the user's message is
// shortened in it (once per message), and that the prompt is near its limit and will not
// shrink in time (once per compaction cycle).
func (k *Compactor) recordWarning(ctx context.Context, t Turn, d contextwindow.Decision) Turn {
	state, err := contextwindow.DecodeState(t.Session.PromptState)
	if err != nil {
		return t
	}
	warning := core.ContextData{TokensBefore: d.Total, Trigger: "shortened", Reason: shortenedReason(d)}
	switch {
	case warning.Reason != "" && state.ReportedID != d.Run[0].ID:
		state.ReportedID = d.Run[0].ID
	case warning.Reason != "" || state.Warned:
		return t
	default:
		warning.Trigger, warning.Reason = "near_limit", nearLimitReason(state, d)
	}
	if warning.Reason == "" {
		return t
	}
	state.Warned = true
	err = k.applyChange(ctx, &t, core.ContextChange{PromptState: state.Encode(), Events: []core.Event{
		t.newEvent(core.EventContextWarning, warning),
	}})
	switch {
	case errors.Is(err, core.ErrStale), ctx.Err() != nil:
		return t // the next prompt warns
	case err != nil:
		k.Logger.WarnContext(ctx, "warning not stored", "session_id", t.Session.ID, "err", err)
		return t
	}
	k.Logger.WarnContext(ctx, "context near its limit", "trigger", warning.Trigger, "session_id", t.Session.ID, "agent", t.Profile.Agent.Name,
		"model", t.Profile.Model.Info().Name, "tokens", d.Total, "usable", d.Budget.Usable, "window", d.Budget.Window,
		"summary_tokens", t.Session.SummaryTokens)
	k.Observer.CountOf(t.Profile.Model.Info().Name, core.CountWarnings, 1)
	return t
}

// shortenedReason says that the prompt shortens the message that it answers; empty = it does not.
func shortenedReason(d contextwindow.Decision) string {
	if len(d.Run) == 0 || d.Run[0].Place != core.PlaceShortened {
		return ""
	}
	if d.Run[0].FilesAsText() {
		return fmt.Sprintf("There is no room for the pages of your PDF: with them your message has %s tokens. The model saw the text, %s.",
			core.Number(d.Shown(d.Run[0].Tokens)), core.Number(d.Run[0].Size))
	}
	return fmt.Sprintf("Your message has %s tokens; the model saw its beginning and its end, %s.",
		core.Number(d.Shown(d.Run[0].Tokens)), core.Number(d.Run[0].Size))
}

// nearLimitReason says that the prompt is near its limit and will not shrink in time; empty
// = it is not, or it will. Either the policy does not summarize by size, or the last
// compaction could not make room. A small window has its trigger near the limit; a prompt
// near it is then normal, because a summary follows.
func nearLimitReason(state contextwindow.PromptState, d contextwindow.Decision) string {
	limit := int(nearLimit * float64(d.Budget.Usable))
	if !d.Budget.HasShare {
		limit = int(nearLimit * float64(d.Budget.Trigger)) // above which messages are left out
	}
	if d.Total <= limit {
		return ""
	}
	advice := "This session has no automatic summaries: summarize it, or its oldest messages will be left out."
	if d.Budget.HasShare {
		if l := state.Landed; l == nil || l.Window != d.Budget.Window || l.Tokens <= limit {
			return ""
		}
		advice = "It could not be made smaller: use a model with a larger window, or shorter messages."
	}
	return fmt.Sprintf("The conversation fills %d %% of what can be sent to the model. %s", d.Total*100/d.Budget.Usable, advice)
}

// promptParts returns the texts of the turn's prompt.
func (k *Compactor) promptParts(t Turn) contextwindow.Parts {
	byID := make(messagesByID, len(t.History)+len(t.Run)+len(t.Pinned))
	for _, list := range [][]core.Message{t.Pinned, t.History, t.Run} {
		for i := range list {
			byID[list[i].ID] = &list[i]
		}
	}
	parts := contextwindow.Parts{
		SummaryRole:  t.Profile.Policy.SummaryRole,
		SystemPrompt: t.Profile.SystemPrompt, Instructions: t.Profile.Instructions, ToolUsage: t.Profile.ToolUsage, Messages: byID,
		Rendered: t.Rendered, Tools: k.Counter.Tools(t.Profile.Tools), ToolSpecs: t.Profile.Tools,
		Format: t.Profile.Agent.ResponseFormat, Effort: t.Profile.Agent.ReasoningEffort, Model: k.modelOf(t),
		ReadsResults: slices.Contains(t.Profile.Agent.Tools, core.ToolReadResult),
		Setups:       t.Setups, Quotes: t.Quotes, Repeated: t.RunInstructions, Loops: t.Notes,
		Summarized: t.Session.SummarizedCount, Searches: slices.Contains(t.Profile.Agent.Tools, core.ToolSearchHistory),
	}
	if t.Session.ConversationSummary != nil {
		parts.Summary = *t.Session.ConversationSummary
		parts.Native = k.nativeOf(t)
	}
	return parts
}

// Request returns what is sent for a decision of Fit, and its size.
func (k *Compactor) Request(ctx context.Context, t Turn, d contextwindow.Decision) (llm.Request, contextwindow.PromptSize, error) {
	prompt, err := k.assemble(ctx, t, d)
	if err != nil {
		return llm.Request{}, contextwindow.PromptSize{}, err
	}
	k.Observer.Sending(ctx, t, d, prompt.Sent)
	req := llm.Request{
		System: prompt.System, Messages: prompt.LLM(), Tools: prompt.Tools, MaxOutputTokens: d.MaxOutput,
		ParallelToolCalls: t.Profile.ParallelToolCalls, Prefix: prompt.Prefix, ChecksPrefix: k.modelOf(t).Prefix.Binds(),
	}
	return req.WithParameters(t.Profile.Agent.ModelParameters, t.Profile.Model.Info()), prompt.Sent, nil
}
