package compaction

import (
	"context"
	"errors"
	"fmt"
	"math"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/tokens"
)

// turn loads what the next prompt of a session depends on. The run in progress,
// if there is one, is kept apart: the cursor never passes its message.
func (k *Keeper) turn(ctx context.Context, scope core.Scope, id core.SessionID) (Turn, error) {
	t, err := k.profiled(ctx, scope, id, "")
	if err != nil {
		return Turn{}, err
	}
	return k.loaded(ctx, scope, t)
}

// profiled loads a turn without its messages. Model is used instead of the session's,
// unless it is empty.
func (k *Keeper) profiled(ctx context.Context, scope core.Scope, id core.SessionID, model string) (Turn, error) {
	session, err := k.Stores.Sessions.Get(ctx, scope, id)
	if err != nil {
		return Turn{}, err
	}
	profile, err := k.Profiles.Profile(ctx, session, model)
	return Turn{Session: session, Profile: profile}, err
}

// loaded loads the messages of a turn.
func (k *Keeper) loaded(ctx context.Context, scope core.Scope, t Turn) (Turn, error) {
	t, err := k.reload(ctx, t)
	if err != nil {
		return Turn{}, err
	}
	run, err := k.Stores.Runs.Active(ctx, scope, t.Session.ID)
	if errors.Is(err, core.ErrNotFound) {
		return t, nil
	}
	if err != nil {
		return Turn{}, fmt.Errorf("find the run in progress: %w", err)
	}
	for i, m := range t.History {
		if m.ID == run.UserMessageID || m.RunID == run.ID { // a question that is answered anew is of an earlier run
			t.RunID, t.Run, t.History = run.ID, t.History[i:], t.History[:i]
			break
		}
	}
	return t, nil
}

// reload reads the session and its messages again after somebody else changed them.
func (k *Keeper) reload(ctx context.Context, t Turn) (Turn, error) {
	session, err := k.Stores.Sessions.Get(ctx, scopeOf(t), t.Session.ID)
	if err != nil {
		return t, fmt.Errorf("reload session: %w", err)
	}
	var cursor core.MessageID
	if session.SummaryThroughID != nil {
		cursor = *session.SummaryThroughID
	}
	messages, err := k.Stores.Messages.GetMessagesAfter(ctx, scopeOf(t), session.ID, cursor)
	if err != nil {
		return t, fmt.Errorf("reload messages: %w", err)
	}
	t.Session, t.History = session, BeforeRun(messages, t.Run)
	return t, nil
}

// BeforeRun returns the messages before the run in progress; all of them when
// there is no run or its message is not in the log yet.
func BeforeRun(messages, run []core.Message) []core.Message {
	if len(run) == 0 || run[0].Seq == 0 {
		return messages
	}
	for i, m := range messages {
		if m.Seq >= run[0].Seq {
			return messages[:i]
		}
	}
	return messages
}

// input turns a turn into what Plan takes.
func (k *Keeper) input(ctx context.Context, t Turn) (contextwindow.Input, error) {
	state, err := contextwindow.DecodeState(t.Session.PromptState)
	if err != nil {
		return contextwindow.Input{}, err
	}
	info := t.Profile.Model.Info()
	window, _ := k.window(t)
	estimate := k.Calibrator.Estimate(info.Name, t.Session.ID)
	in := contextwindow.Input{
		Policy: t.Profile.Policy, Factor: estimate.Factor, Margin: margin(estimate), Cap: estimate.Apply(t.Cap),
		Model:   contextwindow.Limits{Window: window, MaxOutput: info.MaxOutput},
		History: items(t.History), Run: items(t.Run), State: state,
	}
	if k.Compactor != nil {
		in.Loop = t.Profile.Loop
	}
	parts := k.parts(t, nil)
	in.System, in.Tools = contextwindow.SystemTokens(parts, k.Counter), parts.Tools
	if s := t.Session; s.SummaryVersion > 0 && s.ConversationSummary != nil {
		in.Summary = contextwindow.ActiveSummary{
			Version: s.SummaryVersion, ThroughSeq: s.SummaryThroughSeq, Tokens: s.SummaryTokens, Messages: s.SummarizedCount,
		}
	}
	pinned, err := k.pinned(ctx, t)
	in.Pinned = items(pinned)
	return in, err
}

// pinned returns the pinned messages that the summary covers.
func (k *Keeper) pinned(ctx context.Context, t Turn) ([]core.Message, error) {
	if t.Session.SummaryThroughSeq == 0 {
		return nil, nil
	}
	all, err := k.Stores.Messages.Pinned(ctx, scopeOf(t), t.Session.ID)
	if err != nil {
		return nil, fmt.Errorf("load pinned messages: %w", err)
	}
	for i, m := range all {
		if m.Seq > t.Session.SummaryThroughSeq {
			return all[:i], nil
		}
	}
	return all, nil
}

// How far an estimate may be off when the output limit is computed.
const (
	unmeasuredMargin = 0.1
	leastMargin      = 0.03
	mostMargin       = 0.25
)

// margin returns how far the numbers may be off, as a share.
func margin(e tokens.Estimate) float64 {
	if !e.Measured {
		return unmeasuredMargin
	}
	return math.Min(math.Max(2*e.Deviation, leastMargin), mostMargin)
}

// scopeOf returns the scope of the turn's own work.
func scopeOf(t Turn) core.Scope { return core.Scope{Owner: t.Session.Owner} }
