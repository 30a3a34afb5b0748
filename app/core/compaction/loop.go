package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
)

// CompactByRules returns an Options.CompactLoop that needs no model.
func CompactByRules(count llm.TokenCounter) func(context.Context, Turn, summarize.Request) (summarize.Result, error) {
	rules := summarize.NewLoop(summarize.NewSteps(count), count)
	return func(ctx context.Context, _ Turn, req summarize.Request) (summarize.Result, error) {
		return rules.Summarize(ctx, req)
	}
}

// CompactByModel returns an Options.CompactLoop whose notes a model writes: compaction.summary_model, else
// the model that writes the agent's summaries. Rules make the notes where no model may or
// can be called, and for agents that want none. Of the options it uses Models, Counter,
// Calibrator, Logger and Budget.
func CompactByModel(o Options) func(context.Context, Turn, summarize.Request) (summarize.Result, error) {
	rules := CompactByRules(o.Counter)
	return func(ctx context.Context, t Turn, req summarize.Request) (summarize.Result, error) {
		model, note := o.notesModel(ctx, t)
		if model == nil {
			res, err := rules(ctx, t, req)
			res.Note = cmp.Or(res.Note, note)
			return res, err
		}
		name := model.Info().Name
		strategy := summarize.NewLLM(model, o.Counter, func() float64 { return o.Calibrator.Estimate(name, t.Session.ID).Factor })
		return summarize.NewLoop(strategy, o.Counter).Summarize(ctx, req)
	}
}

// notesModel returns the model that writes the notes. Nil = rules make them; the note says
// why, unless the agent's file asks for rules.
func (o Options) notesModel(ctx context.Context, t Turn) (m llm.Model, note string) {
	name := t.Profile.Loop.SummaryModel
	if kind, ok := summarize.KindOf(t.Profile.Policy.Strategy); ok && !kind.Model && name == "" {
		return nil, ""
	}
	return o.summaryModel(ctx, t, cmp.Or(name, t.Profile.Policy.SummaryModel))
}

// compactLoop carries out an order for the run's tool loop, commits the notes, and plans
// again. If there can be no notes the run continues as it is: the only errors are a done ctx
// and a lost compare-and-set.
func (k *Compactor) compactLoop(ctx context.Context, t Turn, p plan) (Turn, plan, error) {
	o := *p.d.Summarize
	o.SummaryID = core.NewID[core.SummaryID]()
	made, err := k.makeNotes(ctx, t, p, o)
	if err != nil {
		return k.continueWithoutNotes(ctx, t, p, made, err)
	}
	in := p.in
	in.State = p.state
	next := newPlan(in.After(o, made.summary.TokenCount, made.summary.MessagesCovered))
	noted := t.withNotes(made.summary)
	err = k.applyChange(ctx, &noted, made.contextChange(noted, p.d, next))
	k.reportCommit(ctx, Commit{Turn: noted, Summary: made.summary, Before: p.d, After: next.d, Err: err})
	switch {
	case err == nil:
		return noted, next, nil
	case errors.Is(err, core.ErrStale):
		return t, p, fmt.Errorf("commit the notes: %w", err)
	default:
		return k.continueWithoutNotes(ctx, t, p, made, err)
	}
}

// makeNotes makes the notes of an order. It calls the model outside of any transaction.
func (k *Compactor) makeNotes(ctx context.Context, t Turn, p plan, o contextwindow.Order) (draftSummary, error) {
	watched, ended := k.Observer.Summarizing(ctx, t, o)
	m, err := k.writeNotes(watched, t, p, o)
	ended(m.outcomeFor(ctx, err))
	return m, err
}

// errNotesOutOfBounds says that a Compactor broke its contract.
var errNotesOutOfBounds = errors.New("the notes are empty or too long")

// writeNotes is makeNotes without the observer.
func (k *Compactor) writeNotes(ctx context.Context, t Turn, p plan, o contextwindow.Order) (draftSummary, error) {
	k.Publisher.Delta(ctx, t.newEvent(core.EventContextStarted, core.ContextData{Kind: o.Kind, Trigger: o.Trigger}))
	var m draftSummary
	earlier, err := k.earlierNotes(ctx, t, p, o)
	if err != nil {
		return m, err
	}
	messages := loopMessages(t.Run, o, earlier.ThroughSeq)
	release, err := k.acquireMaterial(ctx, messages)
	if err != nil {
		return m, err
	}
	defer release()
	start := time.Now()
	res, err := k.CompactLoop(ctx, t, summarize.Request{
		Preset: summarize.PresetCompaction, Previous: earlier.Content, Messages: t.nameSpeakers(messages), Load: k.textLoader(t),
		Speakers: t.Session.Speakers == core.ManySpeakers, Instructions: t.listedInstructions(),
		Limit: o.Limit, TargetTokens: o.AskFor, Replaces: o.Tokens, TimeLimit: k.SummaryTime,
	})
	m.calls, m.cause = k.recordCalls(t, res.Calls), res.Cause
	if err != nil {
		return m, err
	}
	res.Tokens = k.Counter.Text(res.Content)
	if res.Content == "" || res.Tokens > o.Limit || res.Tokens >= o.Tokens {
		return m, errNotesOutOfBounds
	}
	m.summary = newSummary(t, o, res, start)
	m.summary.MessagesAdded, m.summary.MessagesCovered = o.Messages-earlier.MessagesCovered, o.Messages
	return m, nil
}

// earlierNotes returns the notes that the order extends; the zero summary if there are none,
// or if their text was erased: then all messages are read again.
func (k *Compactor) earlierNotes(ctx context.Context, t Turn, p plan, o contextwindow.Order) (core.Summary, error) {
	for _, r := range p.state.Loops {
		if r.From < o.FromSeq || r.Through > o.ThroughSeq {
			continue
		}
		notes, err := k.loadNotes(ctx, t, []contextwindow.LoopRange{r})
		if earlier := notes[r.ID]; err != nil || earlier.Content != "" {
			return earlier, err
		}
	}
	return core.Summary{}, nil
}

// loopMessages returns the messages that notes are made from: the question, and the messages
// of the order that earlier notes did not read.
func loopMessages(run []core.Message, o contextwindow.Order, read int64) []core.Message {
	messages := run[:1:1]
	for _, m := range run[1:] {
		if m.Seq > read && m.Seq >= o.FromSeq && m.Seq <= o.ThroughSeq {
			messages = append(messages, m)
		}
	}
	return messages
}

// notesFailed is the reason that watchers get when notes could not be made; the log has the
// cause.
const notesFailed = "the older part of the tool loop could not be replaced by notes"

// continueWithoutNotes continues without notes on the tool loop, and records the reason.
func (k *Compactor) continueWithoutNotes(ctx context.Context, t Turn, p plan, m draftSummary, cause error) (Turn, plan, error) {
	if ctx.Err() != nil {
		return t, p, context.Cause(ctx)
	}
	kind, reason := core.EventContextFailed, notesFailed
	if errors.Is(cause, summarize.ErrNoGain) {
		kind, reason = core.EventContextSkipped, summarize.ErrNoGain.Error()
	} else {
		k.Logger.WarnContext(ctx, "tool loop not compacted", "session_id", t.Session.ID, "run_id", t.RunID, "agent", t.Profile.Agent.Name, "err", cause)
	}
	err := k.recordUnused(ctx, t, core.SummaryFailure{SessionID: t.Session.ID, ModelCalls: m.calls, Events: []core.Event{
		t.newEvent(kind, core.ContextData{Kind: core.SummaryRun, Trigger: p.d.Summarize.Trigger, Reason: reason}),
	}})
	if err != nil {
		k.Logger.WarnContext(ctx, "event not stored", "session_id", t.Session.ID, "err", err)
	}
	in := p.in // with the stored state: a plan that changes nothing else would not store the order's
	in.NoLoop = true
	return t, newPlan(in), nil
}

// withNotes returns the turn with known notes, so that they are not loaded.
func (t Turn) withNotes(s ...core.Summary) Turn {
	notes := make(map[core.SummaryID]core.Summary, len(t.Notes)+len(s))
	maps.Copy(notes, t.Notes)
	for _, n := range s {
		notes[n.ID] = n
	}
	t.Notes = notes
	return t
}

// loadNotes returns the notes of the ranges and loads those that the turn does not know yet.
// Without missing notes it does not access storage.
func (k *Compactor) loadNotes(ctx context.Context, t Turn, ranges []contextwindow.LoopRange) (map[core.SummaryID]core.Summary, error) {
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
	return t.withNotes(found...).Notes, nil
}

// noteTexts returns the texts of the notes.
func noteTexts(notes map[core.SummaryID]core.Summary) map[core.SummaryID]string {
	out := make(map[core.SummaryID]string, len(notes))
	for id, n := range notes {
		out[id] = n.Content
	}
	return out
}
