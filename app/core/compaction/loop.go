package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/summarize"
)

// compactLoop carries an order for the run's tool loop out, commits the notes, and
// plans again. If there can be none the run goes on as it is: only a done ctx and a
// lost compare-and-set are errors.
func (k *Keeper) compactLoop(ctx context.Context, t Turn, p plan) (Turn, plan, error) {
	o := *p.d.Summarize
	o.SummaryID = core.NewID[core.SummaryID]()
	made, err := k.makeNotes(ctx, t, p, o)
	if err != nil {
		return k.withoutNotes(ctx, t, p, made, err)
	}
	in := p.in
	in.State = p.state
	next := replan(in.After(o, made.summary.TokenCount, made.summary.MessagesCovered))
	noted := t.noting(made.summary)
	change, err := k.notesChange(ctx, noted, made, p, next)
	if err != nil {
		return k.withoutNotes(ctx, t, p, made, err)
	}
	err = k.apply(ctx, &noted, change)
	k.committed(ctx, Commit{Turn: noted, Summary: made.summary, Before: p.d, After: next.d, Err: err})
	switch {
	case err == nil:
		return noted, next, nil
	case errors.Is(err, core.ErrStale):
		return t, p, fmt.Errorf("commit the notes: %w", err)
	default:
		return k.withoutNotes(ctx, t, p, made, err)
	}
}

// makeNotes has the notes of an order made. The model is called outside of any
// transaction.
func (k *Keeper) makeNotes(ctx context.Context, t Turn, p plan, o contextwindow.Order) (made, error) {
	watched, ended := k.Observer.Summarizing(ctx, t, o)
	m, err := k.writeNotes(watched, t, p, o)
	ended(m.outcome(ctx, err))
	return m, err
}

// errBounds says that a Compactor did not do what it promises.
var errBounds = errors.New("the notes are not within their bounds")

// writeNotes does the work of makeNotes.
func (k *Keeper) writeNotes(ctx context.Context, t Turn, p plan, o contextwindow.Order) (made, error) {
	k.Publisher.Delta(ctx, core.NewEvent(t.Session.ID, t.RunID, core.EventContextStarted, core.ContextData{Kind: o.Kind, Trigger: o.Trigger}))
	m := made{run: t.RunID}
	earlier, err := k.earlierNotes(ctx, t, p, o)
	if err != nil {
		return m, err
	}
	start := time.Now()
	res, err := k.Compactor.Compact(ctx, t, summarize.Request{
		Preset: summarize.PresetCompaction, Previous: earlier.Content, Messages: loopMessages(t.Run, o, earlier.ThroughSeq),
		Limit: o.Limit, AskFor: o.AskFor, Replaces: o.Tokens, TimeLimit: k.SummaryTime,
	})
	m.calls, m.cause = k.booked(t, res.Calls), res.Cause
	if err != nil {
		return m, err
	}
	tokens := k.Counter.Text(res.Content)
	if res.Content == "" || tokens > o.Limit || tokens >= o.Tokens {
		return m, errBounds
	}
	m.summary = core.Summary{
		ID: o.SummaryID, SessionID: t.Session.ID, Owner: t.Session.Owner,
		Kind: core.SummaryRun, State: core.SummaryActive, Content: res.Content,
		FromID: o.FromID, FromSeq: o.FromSeq, ThroughID: o.ThroughID, ThroughSeq: o.ThroughSeq,
		MessagesAdded: o.Messages - earlier.MessagesCovered, MessagesCovered: o.Messages,
		TokensBefore: o.Tokens, TokensAfter: tokens, TokenCount: tokens,
		Model: res.Model, Strategy: res.Strategy, Trigger: o.Trigger, Note: res.Note,
		Duration: time.Since(start).Truncate(time.Microsecond), CreatedAt: core.Now(),
	}
	return m, nil
}

// earlierNotes returns the notes that the order extends; the zero summary if there are
// none, or their words are gone: then all is read again.
func (k *Keeper) earlierNotes(ctx context.Context, t Turn, p plan, o contextwindow.Order) (core.Summary, error) {
	for _, r := range p.state.Loops {
		if r.From < o.FromSeq || r.Through > o.ThroughSeq {
			continue
		}
		notes, err := k.notes(ctx, t, []contextwindow.LoopRange{r})
		if earlier := notes[r.ID]; err != nil || earlier.Content != "" {
			return earlier, err
		}
	}
	return core.Summary{}, nil
}

// loopMessages returns what the notes are made from: the question, and the messages of
// the order that earlier notes have not read.
func loopMessages(run []core.Message, o contextwindow.Order, read int64) []core.Message {
	messages := run[:1:1]
	for _, m := range run[1:] {
		if m.Seq > read && m.Seq >= o.FromSeq && m.Seq <= o.ThroughSeq {
			messages = append(messages, m)
		}
	}
	return messages
}

// notesChange returns what commits the notes, with how many messages and tokens the
// prompt has without and with them (L6).
func (k *Keeper) notesChange(ctx context.Context, t Turn, m made, p, next plan) (core.ContextChange, error) {
	before, err := k.assemble(ctx, t, p.d)
	if err != nil {
		return core.ContextChange{}, err
	}
	after, err := k.assemble(ctx, t, next.d)
	if err != nil {
		return core.ContextChange{}, err
	}
	s := m.summary
	data := core.ContextData{
		Kind: s.Kind, Trigger: s.Trigger, MessagesCovered: s.MessagesCovered,
		MessagesBefore: len(before.Messages), MessagesAfter: len(after.Messages),
		TokensBefore: before.Sent.Used(p.d), TokensAfter: after.Sent.Used(next.d),
	}
	var events []core.Event
	if s.Note != "" {
		events = append(events, core.NewEvent(s.SessionID, m.run, core.EventContextFailed, core.ContextData{Kind: s.Kind, Trigger: s.Trigger, Reason: s.Note}))
	}
	events = append(events, core.NewEvent(s.SessionID, m.run, core.EventContextCompleted, data))
	return core.ContextChange{PromptState: next.state.Encode(), Summary: &s, Events: events, ModelCalls: m.calls}, nil
}

// notesFailed is what watchers are told of notes that could not be made: what exactly
// went wrong is the operator's business.
const notesFailed = "the older part of the tool loop could not be replaced by notes"

// withoutNotes goes on without notes on the tool loop, and says why there are none.
func (k *Keeper) withoutNotes(ctx context.Context, t Turn, p plan, m made, cause error) (Turn, plan, error) {
	if ctx.Err() != nil {
		return t, p, context.Cause(ctx)
	}
	kind, reason := core.EventContextFailed, notesFailed
	if errors.Is(cause, summarize.ErrNoGain) {
		kind, reason = core.EventContextSkipped, summarize.ErrNoGain.Error()
	} else {
		k.Logger.WarnContext(ctx, "tool loop not compacted", "session_id", t.Session.ID, "run_id", t.RunID, "agent", t.Profile.Agent.Name, "err", cause)
	}
	err := k.apply(ctx, &t, core.ContextChange{PromptState: t.Session.PromptState, ModelCalls: m.calls, Events: []core.Event{
		core.NewEvent(t.Session.ID, t.RunID, kind, core.ContextData{Kind: core.SummaryRun, Trigger: p.d.Summarize.Trigger, Reason: reason}),
	}})
	if errors.Is(err, core.ErrStale) {
		return t, p, fmt.Errorf("record that there are no notes: %w", err)
	}
	if err != nil {
		k.Logger.WarnContext(ctx, "event not stored", "session_id", t.Session.ID, "err", err)
	}
	in := p.in
	in.State, in.NoLoop = p.state, true
	return t, replan(in), nil
}

// noting returns the turn with notes that are known, so that they are not loaded.
func (t Turn) noting(s ...core.Summary) Turn {
	notes := make(map[core.SummaryID]core.Summary, len(t.Notes)+len(s))
	for id, known := range t.Notes {
		notes[id] = known
	}
	for _, n := range s {
		notes[n.ID] = n
	}
	t.Notes = notes
	return t
}

// notes returns the notes of the ranges; those that the turn does not know yet are
// loaded. Without ranges storage is not asked.
func (k *Keeper) notes(ctx context.Context, t Turn, ranges []contextwindow.LoopRange) (map[core.SummaryID]core.Summary, error) {
	var missing []core.SummaryID
	for _, r := range ranges {
		if _, known := t.Notes[r.ID]; !known && !slices.Contains(missing, r.ID) {
			missing = append(missing, r.ID)
		}
	}
	if len(missing) == 0 {
		return t.Notes, nil
	}
	found, err := k.Stores.Summaries.Find(ctx, scopeOf(t), t.Session.ID, missing)
	if err != nil {
		return nil, fmt.Errorf("load notes: %w", err)
	}
	return t.noting(found...).Notes, nil
}

// texts returns the words of the notes.
func texts(notes map[core.SummaryID]core.Summary) map[core.SummaryID]string {
	out := make(map[core.SummaryID]string, len(notes))
	for id, n := range notes {
		out[id] = n.Content
	}
	return out
}
