package compaction

import (
	"context"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// parts returns the texts of the turn's prompt.
func (k *Keeper) parts(t Turn, pinned []core.Message) contextwindow.Parts {
	parts := contextwindow.Parts{
		SystemPrompt: t.Profile.SystemPrompt, ToolUsage: t.Profile.ToolUsage, Messages: t.messages(pinned),
		Tools: k.Counter.Tools(t.Profile.Tools), Model: t.Profile.Model.Info(),
		ReadsResults: slices.Contains(t.Profile.Agent.Tools, core.ToolReadResult),
	}
	if t.Session.ConversationSummary != nil {
		parts.Summary = *t.Session.ConversationSummary
	}
	return parts
}

// Request returns what is sent for a decision of Fit, and what that has.
func (k *Keeper) Request(ctx context.Context, t Turn, d contextwindow.Decision) (llm.Request, contextwindow.Sent, error) {
	prompt, err := k.assemble(ctx, t, d)
	if err != nil {
		return llm.Request{}, contextwindow.Sent{}, err
	}
	k.Observer.Sending(ctx, t, d, prompt.Sent)
	return llm.Request{
		System: prompt.System, Messages: prompt.LLM(), Tools: t.Profile.Tools, MaxOutputTokens: d.MaxOutput,
	}, prompt.Sent, nil
}
