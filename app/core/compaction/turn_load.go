package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// loadTurn loads what the next prompt of a session depends on. The messages of the run in
// progress are kept apart: the cursor never passes its user message.
func (k *Compactor) loadTurn(ctx context.Context, tenant core.Tenant, id core.SessionID, ask core.PlanPreview) (Turn, error) {
	t, err := k.loadProfile(ctx, tenant, id, ask)
	if err == nil {
		t, err = k.loadTurnMessages(ctx, tenant, t)
	}
	if err != nil {
		return Turn{}, err
	}
	return k.loadSummaryWork(ctx, t)
}

// loadInput loads what the next prompt of a session depends on, and its plan's input.
func (k *Compactor) loadInput(ctx context.Context, tenant core.Tenant, id core.SessionID) (Turn, contextwindow.Input, error) {
	t, err := k.loadTurn(ctx, tenant, id, core.PlanPreview{})
	if err != nil {
		return t, contextwindow.Input{}, err
	}
	in, err := k.planInput(t)
	return t, in, err
}

// loadProfile loads a turn without its messages, with the agent and the model of the preview if it
// has any.
func (k *Compactor) loadProfile(ctx context.Context, tenant core.Tenant, id core.SessionID, ask core.PlanPreview) (Turn, error) {
	session, err := k.Stores.Sessions.Get(ctx, tenant, id)
	if err != nil {
		return Turn{}, err
	}
	session.Agent = cmp.Or(ask.Agent, session.Agent)
	profile, err := k.LoadProfile(ctx, session, ask.Model)
	return Turn{Session: session, Profile: profile}, err
}

// loadTurnMessages loads the messages of a turn whose session was just read. The run in
// progress is the one of the moment at which the session was read: with another one, its
// messages could be those of half a turn.
func (k *Compactor) loadTurnMessages(ctx context.Context, tenant core.Tenant, t Turn) (Turn, error) {
	load := k.loadHistory
	for attempt := 1; ; attempt++ {
		var err error
		if t, err = load(ctx, t); err != nil {
			return Turn{}, err
		}
		load = k.reloadTurn
		if s := t.Session.Status; s == core.SessionIdle || s == core.SessionQueued {
			break
		}
		run, err := k.Stores.Runs.Active(ctx, tenant, t.Session.ID)
		if err != nil && !errors.Is(err, core.ErrNotFound) {
			return Turn{}, fmt.Errorf("find the run in progress: %w", err)
		}
		if run.ID == t.Session.ActiveRunID || attempt == maxSnapshots {
			if err == nil {
				t = t.withRun(run)
			}
			break
		}
	}
	t, err := k.withStanding(ctx, t, allMessages)
	if err != nil {
		return t, err
	}
	return k.withSetups(ctx, t)
}

// withRun returns the turn with the options of the run in progress, and its messages kept apart.
func (t Turn) withRun(run core.Run) Turn {
	t.Profile = t.Profile.WithOptions(run.Options)
	for i, m := range t.History {
		if m.ID == run.UserMessageID || m.RunID == run.ID { // a regenerated answer's question belongs to an earlier run
			t.RunID, t.Run, t.History = run.ID, t.History[i:], t.History[:i]
			break
		}
	}
	return t
}

// reloadTurn reads the session and its messages again after another writer changed them.
func (k *Compactor) reloadTurn(ctx context.Context, t Turn) (Turn, error) {
	session, err := k.Stores.Sessions.Get(ctx, scopeOf(t), t.Session.ID)
	if err != nil {
		return t, fmt.Errorf("reload session: %w", err)
	}
	t.Session = session
	if t, err = k.loadHistory(ctx, t); err == nil && t.Standing != nil {
		t, err = k.withStanding(ctx, t, session.SummaryThroughSeq)
	}
	if err != nil {
		return t, err
	}
	return k.withSetups(ctx, t)
}

// loadHistory loads the messages of the turn's session as it was read.
func (k *Compactor) loadHistory(ctx context.Context, t Turn) (Turn, error) {
	session := t.Session
	var cursor core.MessageID
	if session.SummaryThroughID != nil {
		cursor = *session.SummaryThroughID
	}
	messages, err := k.Stores.Messages.GetMessagesAfter(ctx, scopeOf(t), session.ID, cursor)
	if err != nil {
		return t, fmt.Errorf("load messages: %w", err)
	}
	t.History = BeforeRun(messagesThrough(messages, session.LastSeq), t.Run) // others were stored after the session was read
	t.Pinned, err = k.LoadPinned(ctx, session)
	return t, err
}

// BeforeRun returns the messages before the run in progress; all of them when there is no
// run or its message is not in the log yet.
func BeforeRun(messages, run []core.Message) []core.Message {
	if len(run) == 0 || run[0].Seq == 0 {
		return messages
	}
	return messagesThrough(messages, run[0].Seq-1)
}

// planInput converts a turn to the input of Plan.
func (k *Compactor) planInput(t Turn) (contextwindow.Input, error) {
	state, err := contextwindow.DecodeState(t.Session.PromptState)
	if err != nil {
		return contextwindow.Input{}, err
	}
	info := k.modelOf(t)
	window, _ := k.turnWindow(t)
	estimate := k.Calibrator.Estimate(info.Name, t.Session.ID)
	in := contextwindow.Input{
		Binds: info.Prefix.Binds(), ToolChanges: info.ToolChanges,
		Policy: t.Profile.Policy, Loop: t.Profile.Loop, Factor: estimate.Factor, Margin: unmeasuredMargin, Cap: estimate.Apply(t.Cap),
		Model:   contextwindow.Limits{Window: window, MaxOutput: minKnown(t.Profile.Agent.MaxOutputTokens, info.MaxOutput)},
		History: k.planItems(t, core.WithoutRefused(t.History, core.FinishContentFilter), info), Run: k.planItems(t, t.Run, info), State: state,
	}
	if estimate.Measured {
		in.Margin = min(max(2*estimate.Deviation, minMargin), maxMargin)
	}
	if t.Recalled != nil {
		in.Recalled = t.Recalled.passages
	}
	if t.Standing != nil {
		in.Standing = t.Standing.inputs
	}
	in.Tools, in.Setups = k.Counter.Tools(t.Profile.Tools), t.Setups
	in.System = contextwindow.SystemTokens(contextwindow.Parts{
		SystemPrompt: t.Profile.SystemPrompt, ToolUsage: t.Profile.ToolUsage, Instructions: t.Profile.Instructions, Model: info,
	}, k.Counter)
	if setup, ok := k.promptSetup(t); ok {
		in.Setup = setup.Hash
	}
	if s := t.Session; s.SummaryVersion > 0 && s.ConversationSummary != nil {
		in.Summary = core.SummaryVersion{
			Version: s.SummaryVersion, ThroughSeq: s.SummaryThroughSeq, Tokens: s.SummaryTokens, Messages: s.SummarizedCount,
			Covered: s.SummaryCovered, MadeFor: s.SummaryMadeFor,
		}
		if n := k.nativeOf(t); n != nil {
			in.Summary.Tokens, in.Summary.Frozen = n.Tokens, k.frozenFor(t, n)
		}
	}
	in.Pinned = k.planItems(t, slices.DeleteFunc(slices.Clone(t.Pinned), func(m core.Message) bool {
		return m.Role == core.RoleUser && m.FinishReason == core.FinishContentFilter
	}), llm.Info{}) // they are quoted
	return in, nil
}

// LoadPinned returns the pinned messages that the session's summary covers.
func (k *Compactor) LoadPinned(ctx context.Context, session core.Session) ([]core.Message, error) {
	if session.SummaryThroughSeq == 0 {
		return nil, nil
	}
	all, err := k.Stores.Messages.Pinned(ctx, core.Tenant{Owner: session.Owner}, session.ID)
	if err != nil {
		return nil, fmt.Errorf("load pinned messages: %w", err)
	}
	return messagesThrough(all, session.SummaryThroughSeq), nil
}

// Error margins of an estimate, used to compute the output limit.
const (
	unmeasuredMargin = 0.1
	minMargin        = 0.03
	maxMargin        = 0.25
)

// scopeOf returns the scope of the turn's own work.
func scopeOf(t Turn) core.Tenant { return core.Tenant{Owner: t.Session.Owner} }

// turnWindow returns the window that the turn is planned for, and its source. A window that
// the provider reported when it refused a prompt applies to the model, unless the operator
// configured another; in the session that was refused it always applies.
func (k *Compactor) turnWindow(t Turn) (int, llm.WindowSource) {
	info := t.Profile.Model.Info()
	window, from := info.Window, cmp.Or(info.WindowFrom, llm.WindowKnown)
	if window <= 0 {
		window, from = contextwindow.UnknownWindow, llm.WindowAssumed
	}
	told := minKnown(t.Window, k.Calibrator.SessionWindow(info.Name, t.Session.ID))
	if from != llm.WindowConfigured {
		told = minKnown(told, k.Calibrator.Window(info.Name))
	}
	if told > 0 && told < window {
		return told, llm.WindowReported
	}
	return window, from
}

// minKnown returns the smaller of two numbers; 0 = unknown.
func minKnown(a, b int) int {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// writerWindow returns the window of the model that writes a summary of the turn.
func (k *Compactor) writerWindow(t Turn, model llm.Model) int {
	writing := Turn{Profile: Profile{Model: model}, Session: t.Session}
	if model.Info().Name == t.Profile.Model.Info().Name {
		writing.Window = t.Window
	}
	window, _ := k.turnWindow(writing)
	return window
}
