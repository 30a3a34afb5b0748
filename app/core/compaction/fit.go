package compaction

import (
	"context"
	"errors"
	"fmt"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// nearLimit is the share of usable from which a prompt is near the limit.
const nearLimit = 0.9

// Fit plans the turn's prompt and compacts until it fits. It returns the turn as
// it is then (a summary moves messages out of History) and the decision.
//
// Errors: ErrContextFloor when what cannot be shrunk does not fit; the context's
// own error when ctx ends; storage errors. A summarizer that fails is no error:
// a summary without a model takes its place (B7).
func (k *Keeper) Fit(ctx context.Context, t Turn) (Turn, contextwindow.Decision, error) {
	t, d, err := k.fit(ctx, t)
	if err == nil {
		t = k.warn(ctx, t, d)
		t.Notes, err = k.notes(ctx, t, d.Loops)
	}
	k.Observer.Fitted(ctx, t, d, err)
	return t, d, err
}

// warn tells the watchers, once in a compaction cycle, of a prompt that is near the
// limit while nothing will be done about it in time (R6): either the policy does not
// summarize by size, or the last compaction could not make room. Where the trigger is
// near the limit, as on a small window, to be near is no news: a summary comes next.
func (k *Keeper) warn(ctx context.Context, t Turn, d contextwindow.Decision) Turn {
	limit := int(nearLimit * float64(d.Budget.Usable))
	if d.Total <= limit {
		return t
	}
	state, err := contextwindow.DecodeState(t.Session.PromptState)
	if err != nil || state.Warned {
		return t
	}
	advice := "Nothing is summarized by itself in this session: summarize it, or its oldest messages will be left out."
	if d.Budget.HasShare {
		if l := state.Landed; l == nil || l.Window != d.Budget.Window || l.Tokens <= limit {
			return t
		}
		advice = "It could not be made smaller: use a model with a larger window, or shorter messages."
	}
	state.Warned = true
	percent := d.Total * 100 / d.Budget.Usable
	warned := t
	err = k.apply(ctx, &warned, core.ContextChange{PromptState: state.Encode(), Events: []core.Event{
		core.NewEvent(t.Session.ID, t.RunID, core.EventContextWarning, core.ContextData{
			TokensBefore: d.Total, Trigger: "near_limit",
			Reason: fmt.Sprintf("The conversation takes %d %% of what the model can be sent. %s", percent, advice),
		}),
	}})
	switch {
	case errors.Is(err, core.ErrStale), ctx.Err() != nil:
		return t // the next prompt will tell
	case err != nil:
		k.Logger.WarnContext(ctx, "warning not stored", "session_id", t.Session.ID, "err", err)
		return t
	}
	k.Logger.WarnContext(ctx, "context near its limit", "session_id", t.Session.ID, "agent", t.Profile.Agent.Name,
		"model", t.Profile.Model.Info().Name, "tokens", d.Total, "usable", d.Budget.Usable, "window", d.Budget.Window,
		"summary_tokens", t.Session.SummaryTokens)
	k.Observer.Warned(ctx, warned, d)
	return warned
}
