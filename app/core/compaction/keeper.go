package compaction

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
	"bobbin/app/core/tokens"
)

// sessionStore is what a Keeper needs of the sessions in storage.
type sessionStore interface {
	Get(ctx context.Context, scope core.Scope, id core.SessionID) (core.Session, error)
	ApplyContext(ctx context.Context, scope core.Scope, change core.ContextChange) (core.Session, []core.Event, error)
}

// messageStore is what a Keeper needs of the message log.
type messageStore interface {
	GetMessagesAfter(ctx context.Context, scope core.Scope, id core.SessionID, after core.MessageID) ([]core.Message, error)
	Pinned(ctx context.Context, scope core.Scope, id core.SessionID) ([]core.Message, error)
	CountOnPath(ctx context.Context, scope core.Scope, id core.SessionID) (int, error)
}

// summaryStore lists the versions of summaries.
type summaryStore interface {
	List(ctx context.Context, scope core.Scope, id core.SessionID, q core.PageQuery) (core.Page[core.Summary], error)
}

// runStore finds the run in progress.
type runStore interface {
	Active(ctx context.Context, scope core.Scope, id core.SessionID) (core.Run, error)
}

// publisher tells watchers what was committed.
type publisher interface {
	Publish(ctx context.Context, events []core.Event)
	Delta(ctx context.Context, event core.Event)
}

// counter counts cl100k_base tokens.
type counter interface {
	Text(s string) int
	Tools(tools []llm.ToolSpec) int
}

// calibrator knows how a model's own counts differ from ours, in a conversation.
type calibrator interface {
	Estimate(model string, session core.SessionID) tokens.Estimate
	// Observe takes what we counted in cl100k_base tokens and what the provider counted.
	Observe(model string, session core.SessionID, estimated, provider int)
}

// models finds language models by name.
type models interface {
	Get(name string) (llm.Model, error) // empty = default_llm
	// Cheap returns the small model of the same provider at the same address.
	Cheap(name string) (llm.Model, bool)
}

// profiler says how a session's agent is set up.
type profiler interface {
	// Profile resolves the session's agent; model overrides its model unless empty.
	Profile(ctx context.Context, session core.Session, model string) (Profile, error)
}

// Stores are the repositories of a Keeper.
type Stores struct {
	Sessions  sessionStore
	Messages  messageStore
	Summaries summaryStore
	Runs      runStore
	Blobs     blobStore // nil = images and files are only described
}

// Options are what a Keeper is made of. All but Budget and Observer are required.
type Options struct {
	Stores     Stores
	Models     models
	Profiles   profiler
	Counter    counter
	Calibrator calibrator
	Publisher  publisher
	Logger     *slog.Logger
	// SummaryTime bounds the model calls of one summary; after it the summary is
	// made without a model (C7).
	SummaryTime time.Duration
	Budget      budget   // nil = no limits
	Observer    observer // nil = nobody is told
}

// Keeper keeps the prompts of sessions within their models' windows.
type Keeper struct {
	Options
	flights *flights
}

// New returns a Keeper.
func New(o Options) *Keeper {
	if o.Observer == nil {
		o.Observer = silent{}
	}
	return &Keeper{Options: o, flights: newFlights()}
}

// maxRounds bounds how many summaries one prompt may need: the second is for a
// summary that turned out larger than planned, the third for good measure.
const maxRounds = 3

// maxReloads bounds how often a lost compare-and-set is tried again.
const maxReloads = 5

// fit does the work of Fit.
func (k *Keeper) fit(ctx context.Context, t Turn) (Turn, contextwindow.Decision, error) {
	in, err := k.input(ctx, t)
	if err != nil {
		return t, contextwindow.Decision{}, err
	}
	d, state := contextwindow.Plan(in)
	if d.Summarize == nil && !d.Compacted {
		return t, d, floorError(d)
	}
	release, waited, err := k.flights.acquire(ctx, t.Session.ID)
	if err != nil {
		return t, d, err
	}
	defer release()
	if waited {
		return k.compactFresh(ctx, t, 0)
	}
	t2, d, err := k.compact(ctx, t, plan{in, d, state})
	if errors.Is(err, core.ErrStale) {
		return k.compactFresh(ctx, t, 1)
	}
	return t2, d, err
}

// compactFresh reads the session again and compacts what is needed then. It
// starts over when another process commits first.
func (k *Keeper) compactFresh(ctx context.Context, t Turn, tries int) (Turn, contextwindow.Decision, error) {
	for {
		fresh, err := k.reload(ctx, t)
		if err != nil {
			return t, contextwindow.Decision{}, err
		}
		in, err := k.input(ctx, fresh)
		if err != nil {
			return t, contextwindow.Decision{}, err
		}
		d, state := contextwindow.Plan(in)
		done, d, err := k.compact(ctx, fresh, plan{in, d, state})
		if !errors.Is(err, core.ErrStale) {
			return done, d, err
		}
		if tries++; tries > maxReloads {
			// Not ErrStale: that would say that the run belongs to somebody else.
			return t, d, &core.Error{Kind: core.ErrConflict, Code: "context_conflict",
				Message: "The conversation was summarized by others again and again. Send the message again later."}
		}
	}
}

// plan is a decision with what it was made from and the state that belongs to it.
type plan struct {
	in    contextwindow.Input
	d     contextwindow.Decision
	state contextwindow.PromptState
}

// replan plans the input.
func replan(in contextwindow.Input) plan {
	d, state := contextwindow.Plan(in)
	return plan{in, d, state}
}

// compact carries decisions out until one needs nothing more.
func (k *Keeper) compact(ctx context.Context, t Turn, p plan) (Turn, contextwindow.Decision, error) {
	if p.d.Summarize != nil {
		if d, ok := hopeless(p.in); ok {
			return t, d, floorError(d)
		}
	}
	for round := 1; p.d.Summarize != nil; round++ {
		var err error
		if t, p, err = k.round(ctx, t, p, round); err != nil {
			return t, p.d, err
		}
	}
	if raw := p.state.Encode(); p.d.Compacted && p.d.Floor == nil && !bytes.Equal(raw, t.Session.PromptState) {
		err := k.apply(ctx, &t, core.ContextChange{PromptState: raw})
		if err != nil {
			return t, p.d, fmt.Errorf("store the prompt state: %w", err)
		}
	}
	return t, p.d, floorError(p.d)
}

// apply commits a change against the session as the turn knows it.
func (k *Keeper) apply(ctx context.Context, t *Turn, change core.ContextChange) error {
	change.SessionID, change.Expect = t.Session.ID, t.Session.PromptRevision
	session, events, err := k.Stores.Sessions.ApplyContext(ctx, scopeOf(*t), change)
	if err != nil {
		return err
	}
	k.Publisher.Publish(ctx, events)
	t.Session = session
	return nil
}

// round makes one summary, commits it, and plans again.
func (k *Keeper) round(ctx context.Context, t Turn, p plan, round int) (Turn, plan, error) {
	made, err := k.make(ctx, t, *p.d.Summarize)
	if errors.Is(err, summarize.ErrNoGain) {
		return k.skipped(ctx, t, p, made)
	}
	if err != nil {
		return t, p, err
	}
	in := p.in.After(*p.d.Summarize, made.summary.TokenCount, made.summary.MessagesCovered)
	in.State, in.NoSummary = p.state, round >= maxRounds
	next := replan(in)
	before, shown, err := k.sizes(ctx, t, p, made, next)
	if err != nil {
		return t, p, err
	}
	err = k.apply(ctx, &t, made.change(next.state, before, shown))
	k.committed(ctx, Commit{Turn: t, Summary: made.summary, Before: p.d, After: next.d, Err: err})
	if err != nil {
		return t, p, fmt.Errorf("commit the summary: %w", err)
	}
	t.History = after(t.History, made.summary.ThroughSeq)
	return t, next, nil
}

// skipped goes on without a summary: none would be smaller than what it replaces.
func (k *Keeper) skipped(ctx context.Context, t Turn, p plan, made made) (Turn, plan, error) {
	change := core.ContextChange{PromptState: t.Session.PromptState, ModelCalls: made.calls, Events: []core.Event{
		core.NewEvent(t.Session.ID, t.RunID, core.EventContextSkipped, core.ContextData{
			Trigger: p.d.Summarize.Trigger, Reason: summarize.ErrNoGain.Error(),
		}),
	}}
	if err := k.apply(ctx, &t, change); err != nil {
		return t, p, fmt.Errorf("record the skipped summary: %w", err)
	}
	in := p.in
	in.State, in.NoSummary, in.Force = p.state, true, false
	return t, replan(in), nil
}

// after returns the messages behind the cursor.
func after(messages []core.Message, cursor int64) []core.Message {
	for i, m := range messages {
		if m.Seq > cursor {
			return messages[i:]
		}
	}
	return nil
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
	estimate := k.Calibrator.Estimate(info.Name, t.Session.ID)
	in := contextwindow.Input{
		Policy: t.Profile.Policy, Factor: estimate.Factor, Margin: margin(estimate), Cap: t.Cap,
		Model:   contextwindow.Limits{Window: info.Window, MaxOutput: info.MaxOutput},
		History: items(t.History), Run: items(t.Run), State: state,
	}
	parts := k.parts(t, nil)
	in.System, in.Tools = contextwindow.SystemTokens(parts, k.Counter), parts.Tools
	if t.Window > 0 {
		in.Model.Window = min(in.Model.Window, t.Window)
	}
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
	return llm.Request{
		System: prompt.System, Messages: prompt.LLM(), Tools: t.Profile.Tools, MaxOutputTokens: d.MaxOutput,
	}, prompt.Sent, nil
}

// floorError returns the decision's refusal as an error that may be shown.
func floorError(d contextwindow.Decision) error {
	if d.Floor == nil {
		return nil
	}
	e := core.Errorf(core.ErrContextFloor, "%s", d.Floor.Error())
	e.Code = "context_floor"
	return e
}

// scopeOf returns the scope of the turn's own work.
func scopeOf(t Turn) core.Scope { return core.Scope{Owner: t.Session.Owner} }
