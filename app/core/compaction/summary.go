package compaction

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
)

// budget knows what may still be spent.
type budget interface {
	// Check returns core.ErrSpendLimit when the owner may call no model now.
	Check(ctx context.Context, owner string) error
}

// manner is how a summary is made.
type manner struct {
	limit time.Duration // of the model calls
	note  string        // why no model is asked; empty = one is
	ahead bool          // it is to be prepared
}

// manner returns how the summaries of an effort are made.
func (k *Keeper) manner(t Turn, e *effort) manner {
	switch {
	case e.background:
		return manner{limit: k.BackgroundTime}
	case e.late:
		return manner{note: noTime}
	case t.Work.Breaker.Until != nil:
		return manner{note: noTrust}
	default:
		return manner{limit: k.SummaryTime}
	}
}

// made is a summary that was made and not yet committed.
type made struct {
	order   contextwindow.Order
	run     core.RunID // that it is made for; empty = between runs
	summary core.Summary
	calls   []core.ModelCall
	cause   string // why summary has a note, in a word; empty = see causeOf
	failure string // why the model failed; empty = it did not, or was not asked
	ahead   bool
	// into returns what storing it changes in the session as the turn has it, and the
	// plan after that.
	into func(t Turn, p plan) (plan, core.ContextChange, error)
}

// notices are the most tokens that the prompt without a summary spends on saying
// what is left out, and the one with a summary does not.
const notices = 256

// hopeless reports whether no summary can make the prompt fit, and returns the
// decision that says so: nothing is sent then, to the summarizer neither
// (CONTEXT § 4, rung 8).
func hopeless(in contextwindow.Input) (contextwindow.Decision, bool) {
	in.NoSummary, in.NoLoop = true, true
	d, _ := contextwindow.Plan(in)
	return d, d.Floor != nil && float64(d.Floor.Floor-d.Floor.Usable) > notices*d.Factor
}

// make has the summary of an order made. The model is called outside of any
// transaction. Errors: the context's own, summarize.ErrNoGain, and summarize.ErrFailed
// for a strict order.
func (k *Keeper) make(ctx context.Context, t Turn, o contextwindow.Order, how manner) (made, error) {
	watched, ended := k.Observer.Summarizing(ctx, t, o)
	m, err := k.write(watched, t, o, how)
	ended(m.outcome(ctx, err))
	return m, err
}

// write does the work of make.
func (k *Keeper) write(ctx context.Context, t Turn, o contextwindow.Order, how manner) (made, error) {
	maker, note := k.summarizer(ctx, t, how)
	m := made{order: o, run: t.RunID, ahead: how.ahead, failure: blamed(note)}
	if note != "" && o.Strict {
		return m, fmt.Errorf("%w: %s", summarize.ErrFailed, note)
	}
	k.Publisher.Delta(ctx, core.NewEvent(t.Session.ID, t.RunID, core.EventContextStarted, core.ContextData{Kind: o.Kind, Trigger: o.Trigger, Ahead: how.ahead}))
	req := summarize.Request{
		Preset: t.Profile.Policy.Name, Messages: covered(t.History, o.ThroughSeq), Limit: o.Limit, AskFor: o.AskFor,
		Replaces: o.Tokens, Focus: o.Focus, TimeLimit: how.limit, Strict: o.Strict && t.Profile.Policy.Strategy != contextwindow.StrategyExtractive,
	}
	if t.Session.ConversationSummary != nil {
		req.Previous = *t.Session.ConversationSummary
	}
	start := time.Now()
	res, err := maker.Summarize(ctx, req)
	m.calls, m.cause, m.failure = k.booked(t, res.Calls), res.Cause, cmp.Or(m.failure, strings.TrimPrefix(res.Note, fallback))
	if err != nil {
		return m, err
	}
	m.summary = core.Summary{
		ID: core.NewID[core.SummaryID](), SessionID: t.Session.ID, Owner: t.Session.Owner,
		Kind: core.SummaryRolling, State: core.SummaryActive, Content: res.Content,
		FromID: o.FromID, FromSeq: o.FromSeq, ThroughID: o.ThroughID, ThroughSeq: o.ThroughSeq,
		MessagesAdded: len(req.Messages), MessagesCovered: t.Session.SummarizedCount + len(req.Messages),
		TokensBefore: o.Tokens, TokensAfter: res.Tokens, TokenCount: res.Tokens,
		Model: res.Model, Strategy: res.Strategy, Trigger: o.Trigger, Focus: o.Focus, Note: cmp.Or(res.Note, note),
		Duration: time.Since(start).Truncate(time.Microsecond), CreatedAt: core.Now(),
	}
	return m, nil
}

// covered returns the messages up to the new cursor.
func covered(history []core.Message, through int64) []core.Message {
	n := 0
	for n < len(history) && history[n].Seq <= through {
		n++
	}
	return history[:n]
}

// booked completes the records of the summarizer's model calls, and lets the
// calibration learn from them.
func (k *Keeper) booked(t Turn, calls []core.ModelCall) []core.ModelCall {
	for i := range calls {
		calls[i].ID = core.NewID[string]()
		calls[i].Owner, calls[i].User = t.Session.Owner, t.Session.UserID
		calls[i].SessionID, calls[i].RunID, calls[i].Agent = t.Session.ID, t.RunID, t.Profile.Agent.Name
		k.Calibrator.Observe(calls[i].Model, t.Session.ID, calls[i].Estimated, calls[i].Usage.InputTokens)
	}
	return calls
}

// sizes returns what the prompt has as it is sent, without the summary and with it, in
// the model's tokens: what /context says before and after.
func (k *Keeper) sizes(ctx context.Context, t Turn, p plan, s core.Summary, next plan) (before, with int, err error) {
	old, err := k.assemble(ctx, t, p.d)
	if err != nil {
		return 0, 0, err
	}
	t.Session.ConversationSummary, t.Session.SummaryThroughSeq = &s.Content, s.ThroughSeq
	t.History = after(t.History, s.ThroughSeq)
	prompt, err := k.assemble(ctx, t, next.d)
	return old.Sent.Used(p.d), prompt.Sent.Used(next.d), err
}

// change returns what commits the summary; before and after are the sizes of the
// prompt without and with it.
func (m made) change(state contextwindow.PromptState, before, after int) core.ContextChange {
	s := m.summary
	var events []core.Event
	if s.Note != "" {
		events = append(events, core.NewEvent(s.SessionID, m.run, core.EventContextFailed, core.ContextData{Kind: s.Kind, Trigger: s.Trigger, Reason: s.Note}))
	}
	events = append(events, core.NewEvent(s.SessionID, m.run, core.EventContextCompleted, core.ContextData{
		TokensBefore: before, TokensAfter: after, MessagesCovered: s.MessagesCovered, Kind: s.Kind, Trigger: s.Trigger,
	}))
	return core.ContextChange{PromptState: state.Encode(), Summary: &s, Events: events, ModelCalls: m.calls, Failure: m.failure}
}

// fallback begins the notes of summaries that were made without their model.
const fallback = "fallback: "

// Why no model was asked. What is wrong with one that cannot be used is the operator's
// business and stands in the log.
const (
	noModel  = fallback + "the summary model cannot be used"
	noBudget = fallback + "the spend limit of the day is reached"
	noTime   = fallback + "another summary of the session takes too long"
	noTrust  = fallback + "the summary model failed too often and is not asked for a while"

	noStrategy = fallback + "the strategy does not exist"
)

// blamed returns the note of a summary that had no model as a failure that counts;
// empty where another summary may well have its model.
func blamed(note string) string {
	if note != noModel && note != noStrategy {
		return ""
	}
	return strings.TrimPrefix(note, fallback)
}

// summarizer returns what makes the summaries of the turn's policy. A summary
// model that cannot be used does not fail the conversation (B7): the summary is
// made without one, and the note says so.
func (k *Keeper) summarizer(ctx context.Context, t Turn, how manner) (s *summarize.Summarizer, note string) {
	extractive := summarize.New(summarize.NewExtractive(k.Counter), k.Counter)
	kind, ok := summarize.KindOf(t.Profile.Policy.Strategy)
	if !ok {
		k.Logger.ErrorContext(ctx, "summary without its strategy", "session_id", t.Session.ID, "agent", t.Profile.Agent.Name, "strategy", t.Profile.Policy.Strategy)
		return extractive, noStrategy
	}
	material := summarize.Material{Count: k.Counter}
	if kind.Model {
		if how.note != "" {
			return extractive, how.note
		}
		if note := k.broke(ctx, t); note != "" {
			return extractive, note
		}
		model, err := k.summaryModel(t.Profile)
		if err != nil {
			return extractive, k.unusable(ctx, t, err)
		}
		name := model.Info().Name
		material.Model, material.Factor = k.narrowed(t, model), func() float64 { return k.Calibrator.Estimate(name, t.Session.ID).Factor }
	}
	return summarize.New(kind.New(material), k.Counter), ""
}

// broke returns the note of a summary for which no model may be called now; empty if
// one may.
func (o Options) broke(ctx context.Context, t Turn) string {
	if o.Budget == nil {
		return ""
	}
	err := o.Budget.Check(ctx, t.Session.Owner)
	if err == nil {
		return ""
	}
	o.Logger.WarnContext(ctx, "summary without a model", "session_id", t.Session.ID, "err", err)
	return noBudget
}

// unusable returns the note of a summary whose model cannot be had.
func (o Options) unusable(ctx context.Context, t Turn, err error) string {
	o.Logger.ErrorContext(ctx, "summary model not usable", "session_id", t.Session.ID, "agent", t.Profile.Agent.Name, "err", err)
	return noModel
}

// summaryModel returns the model that writes the summaries: the policy's, else
// the provider's cheap one where the preset asks for it, else the default (W8).
// What is said to a server of one's own is not summarized elsewhere.
func (o Options) summaryModel(p Profile) (llm.Model, error) {
	name := p.Policy.SummaryModel
	if name == "" && p.Policy.CheapSummaryModel {
		if m, ok := o.Models.Cheap(p.Model.Info().Name); ok {
			return m, nil
		}
	}
	m, err := o.Models.Get(name) // empty = default_llm
	if err != nil {
		return nil, fmt.Errorf("summary model: %w", err)
	}
	return m, nil
}
