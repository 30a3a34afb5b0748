package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
)

// mode is how a summary is made.
type mode struct {
	writer writer
	note   string           // why no model is called; empty = the writer's model is
	ahead  bool             // prepare it, do not activate it
	calls  []core.ModelCall // that were already made for it
	failed draftSummary     // the failed summary that this one replaces; empty = none
}

// summaryMode returns how the next summary is made, and hands the calls made so far over to
// it.
func (k *Compactor) summaryMode(t Turn, e *progress) mode {
	how := mode{writer: e.writer, note: e.writer.note, calls: e.calls}
	if !e.background && t.Work.Breaker.Until != nil && how.note == "" {
		how.note = breakerOpen
	}
	e.calls = nil
	return how
}

// draftSummary is a summary that is made but not committed.
type draftSummary struct {
	order   contextwindow.Order
	summary core.Summary
	calls   []core.ModelCall
	cause   string // why summary has a note, in one word; empty = see causeOf
	failure string // why the model failed; empty = it did not, or was not called
	ahead   bool
	// toChange returns the session change that stores the summary, and the plan after it.
	toChange func(t Turn, p plan) (plan, core.ContextChange)
}

// floorDecision reports whether no summary can make the prompt fit, and returns the decision
// that refuses it (rung 8): neither the model nor the summarizer is called then.
func floorDecision(in contextwindow.Input) (contextwindow.Decision, bool) {
	in.NoSummary, in.NoLoop = true, true
	d, _ := contextwindow.Plan(in)
	if d.Floor == nil {
		return d, false
	}
	best, _ := contextwindow.Plan(in.WithBestSummary())
	return d, best.Floor != nil
}

// makeSummary makes the summary of an order. It calls the model outside of any transaction.
// Errors: the context's own, summarize.ErrNoGain, and summarize.ErrFailed for a strict
// order.
func (k *Compactor) makeSummary(ctx context.Context, t Turn, o contextwindow.Order, how mode) (draftSummary, error) {
	watched, ended := k.Observer.Summarizing(ctx, t, o)
	m, err := k.writeSummary(watched, t, o, how)
	ended(m.outcomeFor(ctx, err))
	return m, err
}

// writeSummary is makeSummary without the observer.
func (k *Compactor) writeSummary(ctx context.Context, t Turn, o contextwindow.Order, how mode) (draftSummary, error) {
	m := draftSummary{order: o, ahead: how.ahead, failure: cmp.Or(how.failed.failure, countedFailure(how.note)), calls: how.calls}
	if how.note != "" && o.Strict {
		return m, fmt.Errorf("%w: %s", summarize.ErrFailed, how.note)
	}
	if how.failed.failure == "" {
		k.Publisher.Delta(ctx, t.newEvent(core.EventContextStarted, core.ContextData{Kind: o.Kind, Trigger: o.Trigger, Ahead: how.ahead}))
	}
	req := k.summaryRequest(t, o.Limit, o.AskFor)
	req.Messages, req.Load = t.nameSpeakers(messagesThrough(t.History, o.ThroughSeq)), k.textLoader(t)
	req.Replaces, req.Focus, req.TimeLimit = o.Tokens, o.Focus, k.BackgroundTime
	var strategy summarize.Strategy = summarize.NewExtractive(k.Counter)
	if how.note == "" && how.writer.kind.New != nil {
		strategy, req.Strict = k.newStrategy(t, how.writer), how.writer.model != nil
	}
	release, err := k.acquireMaterial(ctx, req.Messages)
	if err != nil {
		return m, err
	}
	defer release()
	start := time.Now()
	native := k.startNative(ctx, t, o, how, req)
	res, err := summarize.New(strategy, k.Counter).Summarize(ctx, req)
	own, calls := native(err)
	m.calls, m.cause = append(m.calls, append(k.recordCalls(t, res.Calls), withOwner(t, calls)...)...), cmp.Or(res.Cause, how.failed.cause)
	m.failure = cmp.Or(m.failure, strings.TrimPrefix(res.Note, fallback))
	if err != nil {
		return m, err
	}
	s := newSummary(t, o, res, start)
	s.ID, s.Note, s.Native = core.NewID[core.SummaryID](), cmp.Or(res.Note, how.note), own
	s.MessagesAdded, s.MessagesCovered, s.MessagesShortened = len(req.Messages), t.Session.SummarizedCount+len(req.Messages), res.Shortened
	s.TokensCovered = t.Session.SummaryCovered
	for _, it := range k.planItems(t, req.Messages, llm.Info{}) {
		s.TokensCovered += it.Tokens
	}
	m.summary = s
	return m, nil
}

// newSummary returns the summary of an order, without the messages that it covers.
func newSummary(t Turn, o contextwindow.Order, res summarize.Result, start time.Time) core.Summary {
	return core.Summary{
		ID: o.SummaryID, SessionID: t.Session.ID, Owner: t.Session.Owner, Kind: o.Kind, State: core.SummaryActive,
		FromID: o.FromID, FromSeq: o.FromSeq, ThroughID: o.ThroughID, ThroughSeq: o.ThroughSeq, OrderedSeq: o.OrderedSeq,
		Content: res.Content, TokensBefore: o.Tokens, TokensAfter: res.Tokens, TokenCount: res.Tokens,
		Model: res.Model, Strategy: res.Strategy, Note: res.Note,
		Trigger: o.Trigger, Focus: o.Focus, MadeFor: o.MadeFor,
		Duration: time.Since(start).Truncate(time.Microsecond), CreatedAt: core.Now(),
	}
}

// summaryRequest returns the request for a summary of the turn, without the messages.
func (k *Compactor) summaryRequest(t Turn, limit, askFor int) summarize.Request {
	req := summarize.Request{Preset: t.Profile.Policy.Name, Limit: limit, TargetTokens: askFor, Speakers: t.Session.Speakers == core.ManySpeakers, Instructions: t.listedInstructions()}
	if t.Session.ConversationSummary != nil {
		req.Previous = *t.Session.ConversationSummary
	}
	return req
}

// messagesThrough returns the messages up to the new cursor.
func messagesThrough(history []core.Message, through int64) []core.Message {
	n := 0
	for n < len(history) && history[n].Seq <= through {
		n++
	}
	return history[:n]
}

// recordCalls completes the records of the summarizer's model calls and calibrates with
// them.
func (k *Compactor) recordCalls(t Turn, calls []core.ModelCall) []core.ModelCall {
	for i := range withOwner(t, calls) {
		k.Calibrator.Observe(calls[i].Model, t.Session.ID, calls[i].Estimated, calls[i].Usage.InputTokens)
	}
	return calls
}

// withOwner completes the records of model calls for the turn.
func withOwner(t Turn, calls []core.ModelCall) []core.ModelCall {
	for i := range calls {
		calls[i].ID = core.NewID[string]()
		calls[i].Owner, calls[i].User = t.Session.Owner, t.Session.UserID
		calls[i].SessionID, calls[i].RunID, calls[i].Agent = t.Session.ID, t.RunID, t.Profile.Agent.Name
	}
	return calls
}

// contextChange returns the change that commits the summary, with the planned sizes of the prompt without
// and with it.
func (m draftSummary) contextChange(t Turn, before contextwindow.Decision, next plan) core.ContextChange {
	s := m.summary
	var events []core.Event
	if s.Note != "" {
		events = append(events, t.newEvent(core.EventContextFailed, core.ContextData{Kind: s.Kind, Trigger: s.Trigger, Reason: s.Note}))
	}
	data := core.ContextData{Kind: s.Kind, Trigger: s.Trigger, TokensBefore: before.Total, TokensAfter: next.d.Total, MessagesCovered: s.MessagesCovered}
	if s.Kind == core.SummaryRun {
		data.MessagesBefore, data.MessagesAfter = before.Messages(), next.d.Messages()
	}
	events = append(events, t.newEvent(core.EventContextCompleted, data))
	return core.ContextChange{PromptState: next.state.Encode(), Summary: &s, Events: events, ModelCalls: m.calls, Failure: m.failure}
}

// fallback begins the notes of summaries that were made without their model.
const fallback = "fallback: "

// Why no model was called. The log says what is wrong with a model that cannot be used.
const (
	noModel     = fallback + "the summary model cannot be used"
	noBudget    = fallback + "the spend limit of the day is reached"
	noPrice     = fallback + "the summary model has no price, and a limit in US dollars holds"
	breakerOpen = fallback + "the summary model failed too often and is paused"

	noStrategy = fallback + "the strategy does not exist"
)

// countedFailure returns the note of a summary without a model as a failure that the breaker
// counts; empty where the next summary may have its model.
func countedFailure(note string) string {
	if note != noModel && note != noStrategy {
		return ""
	}
	return strings.TrimPrefix(note, fallback)
}

// writer makes the summaries of a turn's policy.
type writer struct {
	kind  summarize.Kind
	model llm.Model // nil = none is needed, or see note
	note  string    // why the model is not called; empty = it is, or none is needed
}

// chooseWriter returns the writer for the turn's policy. A summary model that cannot be used
// does not fail the conversation: the note says why the summary is made without one.
func (k *Compactor) chooseWriter(ctx context.Context, t Turn) writer {
	kind, ok := summarize.KindOf(t.Profile.Policy.Strategy)
	if !ok {
		k.Logger.ErrorContext(ctx, "summary strategy does not exist", "session_id", t.Session.ID, "agent", t.Profile.Agent.Name, "strategy", t.Profile.Policy.Strategy)
		return writer{note: noStrategy}
	}
	w := writer{kind: kind}
	if kind.Model {
		w.model, w.note = k.summaryModel(ctx, t, t.Profile.Policy.SummaryModel)
	}
	return w
}

// newStrategy returns the writer's strategy.
func (k *Compactor) newStrategy(t Turn, w writer) summarize.Strategy {
	material := summarize.Material{Count: k.Counter}
	if w.model != nil {
		name := w.model.Info().Name
		material.Model, material.Factor = k.withKnownWindow(t, w.model), func() float64 { return k.Calibrator.Estimate(name, t.Session.ID).Factor }
	}
	return w.kind.New(material)
}

// orderLimit returns how many tokens of messages one call of the model takes for the next
// summary; 0 = no model is called.
func (k *Compactor) orderLimit(in contextwindow.Input, t Turn, w writer) int {
	if w.model == nil {
		return 0
	}
	s, ok := k.newStrategy(t, w).(interface{ Room(summarize.Request) int })
	if !ok {
		return 0
	}
	return s.Room(k.summaryRequest(t, contextwindow.SummaryRoom(in), in.Policy.SummaryAskTokens))
}

// checkBudget returns why the model may not be called for the turn now.
func (o Options) checkBudget(ctx context.Context, t Turn, m llm.Model) error {
	if o.Budget == nil {
		return nil
	}
	return o.Budget(ctx, t.Session.Owner, m.Info())
}

// summaryModel returns the model that writes the summaries: the named one; else the one of
// the agent's provider that the preset prefers, if the budget allows it; else the model that
// answers. Conversations never go to a provider that is not configured for them. The note
// says why there is no model; it is empty where there is one.
func (o Options) summaryModel(ctx context.Context, t Turn, name string) (m llm.Model, note string) {
	if name == "" {
		m = t.Profile.Model
		if other, ok := o.Models.Preferred(m.Info().Name, t.Profile.Policy.PreferredModel); ok && o.checkBudget(ctx, t, other) == nil {
			return other, ""
		}
	} else {
		var err error
		if m, err = o.Models.Get(name); err != nil {
			o.Logger.ErrorContext(ctx, "summary model unusable", "session_id", t.Session.ID, "agent", t.Profile.Agent.Name, "err", err)
			return nil, noModel
		}
	}
	if err := o.checkBudget(ctx, t, m); err != nil {
		o.Logger.WarnContext(ctx, "summary without a model", "session_id", t.Session.ID, "err", err)
		if errors.Is(err, core.ErrUnprocessable) {
			return nil, noPrice
		}
		return nil, noBudget
	}
	return m, ""
}
