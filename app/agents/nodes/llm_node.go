package nodes

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"bobbin/app/agents/state"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// counter counts the tokens of messages for the log.
type counter interface {
	Message(m core.Message) int
}

// calibrator learns how a model counts.
type calibrator interface {
	// Observe takes what we counted in cl100k_base tokens and what the provider counted.
	Observe(model string, session core.SessionID, estimated, provider int)
	// Tighten raises the estimate for a model after it refused a prompt as too
	// long; ratio is how far we were off, 0 = not known.
	Tighten(model string, session core.SessionID, ratio float64)
	// Told takes over the window that the provider told when it refused a prompt.
	Told(model string, window int)
	// Fitted learns that a prompt and its answer of so many tokens fit.
	Fitted(model string, total int)
}

// Caller is the node llm_node: it makes the prompt, calls the model, streams the
// answer, and stores it. An answer without tool calls ends the run in the same
// transaction.
type Caller struct {
	keeper     contextKeeper
	journal    journal
	counter    counter
	calibrator calibrator
	logger     *slog.Logger
	budget     budget // nil = no limits
}

// NewCaller returns the node.
func NewCaller(keeper contextKeeper, journal journal, counter counter, calibrator calibrator, logger *slog.Logger) *Caller {
	return &Caller{keeper: keeper, journal: journal, counter: counter, calibrator: calibrator, logger: logger}
}

// Run does the node's work: nothing if the log already holds the answer or tool
// calls that wait for their results (a resumed run). Errors: *llm.Error,
// ErrContextFloor, ErrStale.
func (n *Caller) Run(ctx context.Context, s state.AgentState) (state.AgentState, error) {
	if len(s.OpenCalls()) > 0 {
		return s, nil
	}
	if answer, ok := s.Answer(); ok {
		return s, n.end(ctx, s, answer)
	}
	own := s.Profile.Model
	call, err := n.answer(ctx, &s)
	if err == nil {
		s, err = n.store(ctx, s, call)
	}
	s.Profile.Model = own // a fallback is for one call
	return s, err
}

// end ends a resumed run whose answer was stored by an attempt that did not live
// to say so.
func (n *Caller) end(ctx context.Context, s state.AgentState, answer core.Message) error {
	w := write(s)
	w.End = &core.RunEnd{Status: core.RunSucceeded, AnswerID: answer.ID}
	if _, err := n.journal.Append(ctx, w); err != nil {
		return fmt.Errorf("end run: %w", err)
	}
	return nil
}

// call is one model call that succeeded.
type call struct {
	id       core.MessageID // of the message that the answer becomes
	response llm.Response
	records  []core.ModelCall // this one and those that failed before it
	turn     compaction.Turn
	decision contextwindow.Decision
	sent     contextwindow.Sent
}

// How often a call is tried again for reasons that llm.WithRetry cannot know.
const (
	maxOverflows = 2 // the provider says the prompt is too long (CONTEXT § 4)
	maxRestarts  = 1 // the stream broke off, or the answer was empty
)

// answer calls the model until it answers, makes the prompt smaller when the
// provider refuses it as too long, starts over when a stream breaks off, and goes
// on with the agent's fallback models when the model cannot be had.
func (n *Caller) answer(ctx context.Context, s *state.AgentState) (call, error) {
	t := &tries{turn: s.Turn(), spare: s.Profile.Fallbacks}
	for {
		c, err := n.try(ctx, s, t)
		if err == nil {
			return c, nil
		}
		e := llm.AsError(err)
		if e == nil {
			e = t.tooSmall(err)
		}
		if e == nil {
			return c, n.gaveUp(ctx, *s, t, err)
		}
		if err := n.again(ctx, s, t, c, e); err != nil {
			return c, err
		}
	}
}

// try plans the prompt and calls the model once.
func (n *Caller) try(ctx context.Context, s *state.AgentState, t *tries) (call, error) {
	fitted, d, err := n.keeper.Fit(ctx, t.turn)
	if err != nil {
		return call{}, fmt.Errorf("fit context: %w", err)
	}
	*s = s.Fitted(fitted, d)
	t.turn = fitted
	if err := n.allowed(ctx, *s, t); err != nil {
		return call{}, err
	}
	c, err := n.once(ctx, *s, t.turn, d, draftID(*s, t.next))
	t.books = append(t.books, c.records...)
	c.records, c.turn, c.decision = t.books, t.turn, d
	t.last = c
	return c, err
}

// again prepares the next try after one that failed. Its error is that of the
// call: there is no other try.
func (n *Caller) again(ctx context.Context, s *state.AgentState, t *tries, c call, e *llm.Error) error {
	switch {
	case e.Kind == llm.KindContextLength && t.overflows < maxOverflows:
		if err := n.refused(ctx, s, t, c, e); err != nil {
			return err
		}
	case restartable(e, c) && t.restarts < maxRestarts:
		t.restarts++
		n.logger.WarnContext(ctx, "answer broke off, starting over", "run_id", s.Run.ID, "kind", e.Kind)
	case replaceable(e) && len(t.spare) > 0:
		if err := n.fallBack(ctx, s, t, e); err != nil {
			return err
		}
	default:
		if e.Kind == llm.KindContextLength {
			s.Measures = s.Measures.Refused(refusal(c, e))
		}
		c.records = t.books
		return n.failed(ctx, *s, c, e)
	}
	if !c.began() {
		return nil
	}
	t.next = core.NewID[core.MessageID]()
	return n.discard(ctx, *s, c, e, t.next)
}

// restartable reports whether a call that failed may start over; one that failed
// before it began was tried again by llm.WithRetry.
func restartable(e *llm.Error, c call) bool {
	return e.Kind == llm.KindEmpty || c.began() && e.Retryable()
}

// began reports whether the model had said something.
func (c call) began() bool {
	return c.response.Text != "" || c.response.Reasoning != "" || len(c.response.Parts) > 0 || len(c.response.ToolCalls) > 0
}

// draftID returns the id of the message that the call's answer becomes. If the
// process dies, the next attempt can tell which message was on its way; a call
// that starts over takes its text back itself and goes on with the id that it told.
func draftID(s state.AgentState, next core.MessageID) core.MessageID {
	if next != "" {
		return next
	}
	return s.Run.DraftID(s.Run.Attempt, len(s.RunMessages))
}

// once sends the prompt and collects the answer, which becomes the message id.
func (n *Caller) once(ctx context.Context, s state.AgentState, t compaction.Turn, d contextwindow.Decision, id core.MessageID) (call, error) {
	req, sent, err := n.keeper.Request(ctx, t, d)
	if err != nil {
		return call{}, fmt.Errorf("make prompt: %w", err)
	}
	if s.Iteration()+1 >= s.Profile.MaxIterations() && len(req.Tools) > 0 {
		req.ToolChoice = llm.ToolChoiceNone // W13: the last word is text
		if s.Profile.Model.Info().NoToolChoice {
			sent = sent.AsText()
		}
	}
	c := call{id: id, sent: sent}
	start := time.Now()
	stream := newStreamer(n.journal, s, c.id)
	c.response, err = llm.Collect(cleaned(s.Profile.Model.Stream(ctx, req)), func(delta llm.Delta) { stream.delta(ctx, delta) })
	if req.ToolChoice == llm.ToolChoiceNone {
		c.response.ToolCalls = nil
	}
	if err == nil {
		err = silence(c.response, s.Profile.Model.Info().Provider)
	}
	c.records = []core.ModelCall{n.record(s, sent, c.response, err, start)}
	return c, err
}

// silence returns why an answer that ended in order is none: there is neither text
// nor a tool call in it. Nil if it is one.
func silence(res llm.Response, provider string) error {
	if strings.TrimSpace(res.Text) != "" || len(res.ToolCalls) > 0 {
		return nil
	}
	kind := llm.KindEmpty
	if res.Finish == core.FinishContentFilter {
		kind = llm.KindContentFilter
	}
	return &llm.Error{Kind: kind, Provider: provider,
		Message: fmt.Sprintf("the model ended its answer (%q) without saying anything", res.Finish)}
}

// record books one call and lets the calibration learn from it.
func (n *Caller) record(s state.AgentState, sent contextwindow.Sent, res llm.Response, err error, start time.Time) core.ModelCall {
	info := s.Profile.Model.Info()
	m := core.ModelCall{
		ID: core.NewID[string](), Owner: s.Run.Owner, User: s.Run.User, SessionID: s.Run.SessionID, RunID: s.Run.ID,
		Agent: s.Run.Agent, Purpose: core.PurposeAnswer, Model: info.Name, Provider: info.Provider,
		Estimated: sent.Total(), Cost: info.Cost(res.Usage), FinishReason: res.Finish, Duration: time.Since(start), CreatedAt: core.Now(),
	}
	if e := llm.AsError(err); e != nil {
		m.Error = string(e.Kind)
	}
	if res.Usage != nil {
		m.Usage = *res.Usage
		n.calibrator.Fitted(info.Name, res.Usage.InputTokens+res.Usage.OutputTokens)
		if sent.Comparable() {
			n.calibrator.Observe(info.Name, s.Session.ID, sent.Total(), res.Usage.InputTokens)
		}
	}
	return m
}

// discard takes back what a broken stream had said. It is stored, and so is the id of
// the message that takes its place: whoever was not there at that moment must hear of
// it, and so must the next attempt if this one dies.
func (n *Caller) discard(ctx context.Context, s state.AgentState, c call, e *llm.Error, next core.MessageID) error {
	w := write(s)
	w.Next = next
	w.Events = []core.Event{core.NewEvent(s.Run.SessionID, s.Run.ID, core.EventMessageDiscarded,
		core.DiscardedData{MessageID: c.id, Reason: string(e.Kind)})}
	if _, err := n.journal.Append(ctx, w); err != nil {
		return fmt.Errorf("take half an answer back: %w", err)
	}
	return nil
}

// store writes the answer; one without tool calls ends the run with it.
func (n *Caller) store(ctx context.Context, s state.AgentState, c call) (_ state.AgentState, err error) {
	m := core.Message{
		ID: c.id, SessionID: s.Run.SessionID, Owner: s.Run.Owner, OnPath: true, Role: core.RoleAssistant,
		Content: c.response.Text, Status: core.MessageComplete, ToolCalls: sendable(c.response.ToolCalls, s.ContextMessages, s.RunMessages),
		Model: s.Profile.Model.Info().Name, FinishReason: c.response.Finish, Source: s.Run.Input.Source,
		RunID: s.Run.ID, CreatedAt: core.Now(),
	}
	m.Parts = c.response.Parts
	if len(m.Parts) == 0 && c.response.Reasoning != "" {
		m.Parts = []core.Part{{Type: "reasoning", Text: c.response.Reasoning}}
	}
	m.TokenCount = n.counter.Message(m)
	w := write(s)
	w.Messages, w.ModelCalls, w.Usage = []core.Message{m}, c.records, usage(c.records)
	if len(m.ToolCalls) == 0 {
		w.End = &core.RunEnd{Status: core.RunSucceeded, AnswerID: m.ID}
	}
	for _, tc := range m.ToolCalls {
		if approvalMode(s, tc.Name) == "" { // else tool_node tells it, when it knows
			w.Events = append(w.Events, toolStarted(s, tc))
		}
	}
	if w.Context, err = n.report(s, c); err != nil {
		return s, err
	}
	written, err := n.journal.Append(ctx, w)
	if err != nil {
		return s, fmt.Errorf("store answer: %w", err)
	}
	s.RunMessages = append(s.RunMessages[:len(s.RunMessages):len(s.RunMessages)], written.Messages...)
	s.Usage = s.Usage.Add(w.Usage)
	return s, nil
}
