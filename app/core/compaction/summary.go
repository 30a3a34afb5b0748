package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
)

// draft is a summary in the making: an order, and what has become of it.
type draft struct {
	order   contextwindow.Order
	writer  writer
	ahead   bool // prepare it, do not activate it
	summary core.Summary
	calls   []core.ModelCall // that were made for it
	cause   string           // why summary has a note, in one word; empty = see outcomeFor
	failure string           // why the model failed; empty = it did not, or was not called
	err     error            // why it is not made, or not stored

	leavesRefused bool // its model has refused it with the messages that a model had refused before
}

// makeSummary makes the summary of the draft's order. It calls the model outside of any transaction.
// Errors: the context's own, summarize.ErrNoGain, and summarize.ErrFailed for a strict
// order.
func (k *Compactor) makeSummary(ctx context.Context, t Turn, p plan, m draft) (made draft, err error) {
	ctx, ended := k.Observer.Summarizing(ctx, t, m.order)
	defer func() { ended(made.outcomeFor(ctx, err)) }()
	o, note, again := m.order, m.writer.note, m.failure != ""
	counts := o.Kind == core.SummaryRolling  // the breaker counts failures
	if counts && !again && note == noModel { // the next summary will not have its model either
		m.failure = strings.TrimPrefix(note, fallback)
	}
	if note != "" && o.Strict {
		return m, fmt.Errorf("%w: %s", summarize.ErrFailed, note)
	}
	if !again {
		k.Publisher.Delta(ctx, t.newEvent(core.EventContextStarted, core.ContextData{Kind: o.Kind, Trigger: o.Trigger, Ahead: m.ahead}))
	}
	req, maker, err := k.summaryMaterial(ctx, t, p, m)
	if err != nil {
		return m, err
	}
	release, err := k.acquireMaterial(ctx, req.Messages)
	if err != nil {
		return m, err
	}
	defer release()
	start := time.Now()
	native := k.startNative(ctx, t, m, req)
	res, err := maker.Summarize(ctx, req)
	own, calls := native(err)
	for _, c := range res.Calls {
		k.Calibrator.Observe(c.Model, t.Session.ID, c.Estimated, c.Usage.InputTokens)
	}
	m.calls, m.cause = append(m.calls, withOwner(t, append(res.Calls, calls...))...), cmp.Or(res.Cause, m.cause)
	if counts {
		m.failure = cmp.Or(m.failure, strings.TrimPrefix(res.Note, fallback))
	}
	if err != nil {
		return m, err
	}
	s := &m.summary
	*s = core.Summary{
		ID: o.SummaryID, SessionID: t.Session.ID, Owner: t.Session.Owner, Kind: o.Kind, State: core.SummaryActive,
		FromID: o.FromID, FromSeq: o.FromSeq, ThroughID: o.ThroughID, ThroughSeq: o.ThroughSeq, OrderedSeq: o.OrderedSeq,
		Content: res.Content, TokensBefore: o.Tokens, TokensAfter: res.Tokens, TokenCount: res.Tokens,
		Model: res.Model, Strategy: res.Strategy, Note: cmp.Or(res.Note, note), Native: own,
		Trigger: o.Trigger, Focus: o.Focus, MadeFor: o.MadeFor,
		Duration: time.Since(start).Truncate(time.Microsecond), CreatedAt: core.Now(),
	}
	if o.Kind == core.SummaryRun {
		s.MessagesAdded, s.MessagesCovered = len(req.Messages)-1, o.Messages // the first is the question
		return m, nil
	}
	s.ID, s.TokensCovered = core.NewID[core.SummaryID](), t.Session.SummaryCovered
	s.MessagesAdded, s.MessagesCovered, s.MessagesShortened = len(req.Messages), t.Session.SummarizedCount+len(req.Messages), res.Shortened
	for _, it := range k.planItems(t, req.Messages, llm.Info{}) {
		s.TokensCovered += it.Tokens
	}
	return m, nil
}

// summaryMaterial returns what the draft is made from, and what makes it.
func (k *Compactor) summaryMaterial(ctx context.Context, t Turn, p plan, m draft) (summarize.Request, *summarize.Summarizer, error) {
	o, w := m.order, m.writer
	req := k.summaryRequest(t, w, o.Limit, o.AskFor)
	req.Replaces, req.Focus = o.Tokens, o.Focus
	req.Load = func(ctx context.Context, list []core.Message) ([]core.Message, error) {
		list, err := k.loadTexts(ctx, t, list)
		return t.nameSpeakers(list), err
	}
	if o.Kind == core.SummaryRun {
		earlier, err := k.earlierNotes(ctx, t, p, o)
		// The question, and the messages of the order that earlier notes did not read.
		messages := t.Run[:1:1]
		for _, m := range t.Run[1:] {
			if m.Seq > earlier.ThroughSeq && m.Seq >= o.FromSeq && m.Seq <= o.ThroughSeq {
				messages = append(messages, m)
			}
		}
		req.Messages = t.nameSpeakers(messages)
		req.Preset, req.Previous, req.TimeLimit = summarize.PresetCompaction, earlier.Content, k.SummaryTime
		if w.model == nil {
			return req, summarize.New(summarize.NewSteps(k.Counter), k.Counter), err
		}
		return req, summarize.New(k.newStrategy(t, w), k.Counter), err
	}
	isExcerpt, marks := w.note != "" || w.kind.New == nil, []core.FinishReason{core.FinishContentFilter}
	if w.model == nil || isExcerpt || m.leavesRefused { // prompts with their very words would be refused
		marks = append(marks, core.FinishRefused)
	}
	material := messagesThrough(core.WithoutRefused(t.History, marks...), o.ThroughSeq)
	if strings.Contains(w.note, string(llm.KindContentFilter)) { // a filter has refused all of them to the summary model
		material = slices.Clone(material)
		for i := range material {
			material[i].Role = core.RoleSystem
		}
	}
	req.Messages, req.TimeLimit = t.nameSpeakers(material), k.BackgroundTime
	if isExcerpt {
		return req, summarize.New(summarize.NewExtractive(k.Counter), k.Counter), nil
	}
	req.Strict = w.model != nil
	return req, summarize.New(k.newStrategy(t, w), k.Counter), nil
}

// summaryRequest returns the request for a summary of the turn, without the messages.
func (k *Compactor) summaryRequest(t Turn, w writer, limit, askFor int) summarize.Request {
	req := summarize.Request{Preset: t.Profile.Policy.Name, Limit: limit, TargetTokens: askFor, Speakers: t.Session.Speakers == core.ManySpeakers}
	if w.model != nil {
		req.Window = k.writerWindow(t, w.model)
	}
	if t.Standing != nil && t.Profile.Policy.StandingInstructions {
		req.Instructions = t.Standing.given // prompts list them: the summary need not quote them
	}
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

// withOwner completes the records of model calls for the turn.
func withOwner(t Turn, calls []core.ModelCall) []core.ModelCall {
	for i := range calls {
		calls[i].ID = core.NewID[string]()
		calls[i].Owner, calls[i].User = t.Session.Owner, t.Session.UserID
		calls[i].SessionID, calls[i].RunID, calls[i].Agent = t.Session.ID, t.RunID, t.Profile.Agent.Name
	}
	return calls
}

// contextChange returns the change that commits the summary, with the sizes of the prompt without and with it.
func (m draft) contextChange(t Turn, before contextwindow.Decision, next plan) core.ContextChange {
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
)

// writer makes the summaries of a turn's policy.
type writer struct {
	kind  summarize.Kind
	model llm.Model // nil = none is needed, or see note
	note  string    // why the model is not called; empty = it is, or none is needed
}

// chooseNotesWriter returns the writer of notes on the turn's tool loop: compaction.summary_model, else the
// model that writes the agent's summaries. Rules make the notes where no model may or can be called,
// and for agents that want none.
func (k *Compactor) chooseNotesWriter(ctx context.Context, t Turn) (w writer) {
	name := t.Profile.Loop.SummaryModel
	if kind := summarize.KindOf(t.Profile.Policy.Strategy); kind.New == nil || kind.Model || name != "" {
		w.kind = summarize.KindOf(summarize.StrategyLLM)
		w.model, w.note = k.summaryModel(ctx, t, cmp.Or(name, t.Profile.Policy.SummaryModel))
	}
	return w
}

// newStrategy returns the writer's strategy.
func (k *Compactor) newStrategy(t Turn, w writer) summarize.Strategy {
	material := summarize.Material{Count: k.Counter}
	if w.model != nil {
		name := w.model.Info().Name
		material.Model, material.Factor = w.model, func() float64 { return k.Calibrator.Estimate(name, t.Session.ID).Factor }
	}
	return w.kind.New(material)
}

// orderLimit returns how many tokens of messages one call takes for the next summary; 0 = no model is called.
func (k *Compactor) orderLimit(in contextwindow.Input, t Turn, w writer) int {
	if w.model == nil {
		return 0
	}
	s, ok := k.newStrategy(t, w).(interface{ Room(summarize.Request) int })
	if !ok {
		return 0
	}
	return s.Room(k.summaryRequest(t, w, contextwindow.SummaryRoom(in), in.Policy.SummaryAskTokens))
}

// checkBudget returns why the model may not be called for the turn now.
func (k *Compactor) checkBudget(ctx context.Context, t Turn, m llm.Model) error {
	if k.Budget == nil {
		return nil
	}
	return k.Budget(ctx, t.Session.Owner, m.Info())
}

// summaryModel returns the model that writes the summaries: the named one; else the one of
// the agent's provider that the preset prefers, if the budget allows it; else the model that
// answers. Conversations never go to a provider that is not configured for them. The note
// says why there is no model; it is empty where there is one.
func (k *Compactor) summaryModel(ctx context.Context, t Turn, name string) (m llm.Model, note string) {
	if name == "" {
		m = t.Profile.Model
		if other, ok := k.Models.Preferred(m.Info().Name, t.Profile.Policy.PreferredModel); ok && k.checkBudget(ctx, t, other) == nil {
			return other, ""
		}
	} else {
		var err error
		if m, err = k.Models.Get(name); err != nil {
			k.Logger.ErrorContext(ctx, "summary model unusable", "session_id", t.Session.ID, "agent", t.Profile.Agent.Name, "err", err)
			return nil, noModel
		}
	}
	if err := k.checkBudget(ctx, t, m); err != nil {
		k.Logger.WarnContext(ctx, "summary without a model", "session_id", t.Session.ID, "err", err)
		if errors.Is(err, core.ErrUnprocessable) {
			return nil, noPrice
		}
		return nil, noBudget
	}
	return m, ""
}

// compactLoop carries out an order for the run's tool loop, commits the notes, and plans
// again. If there can be no notes the run continues as it is: the only errors are a done ctx
// and a lost compare-and-set.
func (k *Compactor) compactLoop(ctx context.Context, t Turn, p plan, e *progress) (Turn, plan, error) {
	m := draft{order: *p.d.Summarize, writer: k.chooseNotesWriter(ctx, t)}
	m.order.SummaryID = core.NewID[core.SummaryID]()
	m, err := k.makeSummary(ctx, t, p, m)
	if err == nil {
		noted, next, failed := k.commitDraft(ctx, t, p, m, e)
		if failed == nil || errors.Is(failed, core.ErrStale) {
			return noted.withNotes(m.summary), next, failed
		}
		err = failed
	}
	m.err = err
	return k.continueWithout(ctx, t, p, m, e)
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
