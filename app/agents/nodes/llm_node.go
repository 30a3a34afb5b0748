package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
)

// LLM is the node llm_node: it makes the prompt, calls the model, streams the
// answer, and stores it. An answer without tool calls ends the run in the same
// transaction.
type LLM struct{ Deps }

// Run does the node's work: nothing if the log already holds the answer or tool
// calls that wait for their results (a resumed run). Errors: *llm.Error,
// ErrContextFloor, ErrStale.
func (n *LLM) Run(ctx context.Context, s AgentState) (AgentState, error) {
	if len(s.OpenCalls()) > 0 {
		return s, nil
	}
	if answer, ok := s.Answer(); ok { // of an attempt that did not live to say so
		w := newWrite(s)
		w.End = &core.RunEnd{Status: core.RunSucceeded, AnswerID: answer.ID}
		return s, n.write(ctx, w, "end run")
	}
	own := s.Profile.Model
	call, err := n.callUntilAnswered(ctx, &s)
	if err == nil {
		if call.response.Dropped != nil { // the provider did not take all thoughts of the prompt
			turn, err := n.Compactor.DropThoughts(ctx, call.turn, *call.response.Dropped)
			if err != nil { // the next prompt meets it again
				n.Logger.WarnContext(ctx, "thoughts that were left out not recorded", "run_id", s.Run.ID, "err", err)
			} else {
				call.turn, s = turn, s.Fitted(turn, call.decision)
			}
		}
		s, err = n.storeAnswer(ctx, s, call)
	}
	s.Profile.Model = own // a fallback is for one call
	return s, err
}

// call is one model call that succeeded.
type call struct {
	id       core.MessageID // of the message that the answer becomes
	response llm.Response
	records  []core.ModelCall // this one and those that failed before it
	turn     compaction.Turn
	decision contextwindow.Decision
	sent     contextwindow.PromptSize
	prefix   string            // see llm.Request
	digests  string            // of the prompt, see llm.Request
	warning  *core.ContextData // see attempts
	// calledAnyway: it called a tool, but was told not to.
	calledAnyway bool
	mayBeTooLong bool       // of one that was refused
	err          *llm.Error // of attempts.suspected
}

// How often a call is tried again for reasons that llm.WithRetry cannot know.
const (
	maxOverflows = 4 // the prompt is too long, or may be
	maxRestarts  = 1 // the stream broke off, or the answer was empty
)

// callUntilAnswered calls the model until it answers, makes the prompt smaller when the
// provider refuses it as too long, starts over when a stream breaks off, and goes
// on with the agent's fallback models when the model cannot be had.
func (n *LLM) callUntilAnswered(ctx context.Context, s *AgentState) (call, error) {
	if slices.Contains(s.leavesOut, leftOutMedia) {
		s.Profile.Model = llm.WithoutMedia(s.Profile.Model)
	}
	t := &attempts{turn: s.NextTurn(), spare: s.Profile.Fallbacks, leavesOut: s.leavesOut, refused: s.refused}
	for {
		c, err := n.tryOnce(ctx, s, t)
		if err == nil {
			n.learnSupposed(s, t, c)
			if t.failed == nil { // else another model answers
				s.leavesOut, s.refused = t.leavesOut, t.refused
			}
			return c, nil
		}
		e := llm.AsError(err)
		if e == nil && errors.Is(err, core.ErrContextFloor) {
			// Why there was a fallback, as the next one may hold the prompt, or the refusal that led to a smaller window.
			if e = t.failed; t.suspected != nil {
				e = t.suspected.err
			}
		}
		if e == nil {
			if len(t.books) > 0 && errors.Is(err, core.ErrContextFloor) { // the calls before it are booked
				n.recordCalls(ctx, *s, t.last)
			}
			return c, err
		}
		if err := n.prepareRetry(ctx, s, t, c, e); err != nil {
			return c, err
		}
	}
}

// tryOnce plans the prompt, unless retrieve_context has just done it, and calls the model once.
func (n *LLM) tryOnce(ctx context.Context, s *AgentState, t *attempts) (call, error) {
	p := s.Planned
	s.Planned = nil
	if p == nil {
		fitted, d, err := n.Compactor.Fit(ctx, t.turn)
		if err != nil {
			return call{}, fmt.Errorf("fit context: %w", err)
		}
		*s = s.Fitted(fitted, d)
		p = &Planned{Turn: fitted, Decision: d}
	}
	t.turn = p.Turn
	if n.Budget != nil {
		if err := n.Budget(ctx, s.Run.Owner, s.Profile.Model.Info()); err != nil {
			if len(t.books) > 0 {
				n.recordCalls(ctx, *s, t.last)
			}
			return call{}, err
		}
	}
	c, err := n.callModel(ctx, *s, t, p.Decision)
	t.books = append(t.books, c.records...)
	c.records, c.turn, c.warning = t.books, t.turn, t.warning
	t.last = c
	return c, err
}

// prepareRetry prepares the next try after one that failed. Its error is that of the call: there is no other.
func (n *LLM) prepareRetry(ctx context.Context, s *AgentState, t *attempts, c call, e *llm.Error) error {
	c.mayBeTooLong = n.mayBeTooLong(s, t, c, e)
	if err := n.loadRefused(ctx, s, t, e); err != nil {
		return err
	}
	switch {
	case e.Kind == llm.KindCompactionRefused && !t.refusedNative:
		t.refusedNative = true
		turn, err := n.Compactor.RefuseNative(ctx, t.turn)
		if err != nil {
			return err
		}
		t.turn = turn
	case e.Kind == llm.KindToolChangesRefused && !t.refusedTools:
		t.refusedTools = true
		n.Compactor.RefuseToolChanges(ctx, t.turn)
	case e.Kind == llm.KindContextLength && t.overflows < maxOverflows:
		if err := n.handleRefusal(ctx, s, t, c, e); err != nil {
			return err
		}
	case t.canLeaveOut(c, e) != "":
		n.leaveOut(ctx, s, t, c, e)
	case c.calledAnyway && e.Kind == llm.KindEmpty:
		c.records = t.books
		n.recordCalls(ctx, *s, c)
		return &core.Error{Kind: core.ErrUnprocessable, Code: "step_limit", Message: fmt.Sprintf(
			"The model called tools in each of its %d rounds, and gave no answer in the last one. Ask for less at once, or raise max_iterations of the agent.", s.Profile.MaxIterations())}
	case c.mayBeTooLong:
		if err := n.retryShorter(ctx, *s, t, c, e); err != nil {
			return err
		}
	case (e.Kind == llm.KindEmpty || c.hasOutput() && e.Retryable()) && t.restarts < maxRestarts: // else llm.WithRetry has tried
		t.restarts++
		n.Logger.WarnContext(ctx, "answer broke off, starting over", "run_id", s.Run.ID, "kind", e.Kind)
	case canFallBack(e) && len(t.spare) > 0:
		if err := n.fallBack(ctx, s, t, e); err != nil {
			return err
		}
	default:
		if e.Kind == llm.KindContextLength {
			s.Measures = s.Measures.Refused(refusalMessage(c, e))
		}
		if t.suspected != nil && (e.Unclear || e == t.suspected.err) {
			c, e = *t.suspected, t.suspected.err // a shorter prompt did not help
		}
		if e.Kind == llm.KindOverloaded {
			n.Calibrator.SetOverload(s.Profile.Model.Info().Name, s.Session.ID, tokens.Overloaded)
		}
		// A call that was canceled while the model spoke has its price too.
		if e.Kind != llm.KindCanceled || c.hasOutput() && errors.Is(context.Cause(ctx), core.ErrCanceled) {
			c.records = t.books
			n.recordCalls(ctx, *s, c)
		}
		return e
	}
	if !c.hasOutput() {
		return nil
	}
	t.next = core.NewID[core.MessageID]()
	return n.discardDraft(ctx, *s, c, e, t.next)
}

// hasOutput reports whether the model had said something.
func (c call) hasOutput() bool {
	return c.response.Text != "" || c.response.Reasoning != "" || len(c.response.Parts) > 0 || len(c.response.ToolCalls) > 0
}

// callModel sends the prompt and collects the answer.
func (n *LLM) callModel(ctx context.Context, s AgentState, t *attempts, d contextwindow.Decision) (call, error) {
	d = t.withoutRefused(d)
	req, sent, err := n.Compactor.Request(ctx, t.turn, d)
	if err != nil {
		return call{decision: d}, fmt.Errorf("make prompt: %w", err)
	}
	req.ToolChoice, req.Once = toolChoice(s), t.isOverload()
	if req.ToolChoice.Forced() && s.isLastCall() {
		req.Tools = slices.DeleteFunc(slices.Clone(req.Tools), func(t llm.ToolSpec) bool { return !s.Run.HasClientTool(t.Name) })
	}
	if req.ToolChoice == core.ToolChoiceNone && s.Profile.Model.Info().NoToolChoice {
		sent = sent.AsText()
	}
	mayCall := req.ToolChoice != core.ToolChoiceNone && (len(req.Tools) > 0 || !s.isLastCall()) // some models call tools that they do not have
	if slices.Contains(t.leavesOut, leftOutTools) {
		req.Messages, req.Tools, req.ToolChoice = llm.ToolTurnsAsText(req.Messages), nil, core.ToolChoiceAuto
		sent = sent.AsText()
	}
	c := call{id: t.next, decision: d, sent: sent, prefix: req.Prefix, digests: req.Digests()}
	if c.id == "" { // if the process dies, the next attempt can tell which message was being written
		c.id = s.Run.DraftID(s.Run.Attempt, len(s.RunMessages))
	}
	start := time.Now()
	c.response, err = llm.Collect(s.Profile.Model.Stream(ctx, req), n.passDeltas(ctx, s, c.id, mayCall))
	if strings.TrimSpace(c.response.Text) != "" && (c.response.Finish == core.FinishContentFilter || llm.IsKind(err, llm.KindContentFilter)) {
		c.response.Finish, err = core.FinishContentFilter, n.checkHalf(ctx, &s, t, c)
	}
	if c.response.Finish == core.FinishContentFilter { // its calls may be half ones, too
		c.response.ToolCalls = nil
	}
	if !mayCall {
		c.calledAnyway, c.response.ToolCalls = len(c.response.ToolCalls) > 0, nil
	}
	if res := c.response; err == nil && strings.TrimSpace(res.Text) == "" && len(res.ToolCalls) == 0 {
		kinds := map[core.FinishReason]llm.ErrorKind{core.FinishContentFilter: llm.KindContentFilter, core.FinishLength: llm.KindOutputLimit}
		err = &llm.Error{Kind: cmp.Or(kinds[res.Finish], llm.KindEmpty), Provider: s.Profile.Model.Info().Provider,
			Message: fmt.Sprintf("the model ended its answer (%q) without saying anything", res.Finish)}
	}
	c.records = []core.ModelCall{n.recordCall(s, sent, c.response, err, start)}
	return c, err
}

// toolChoice returns the tool choice of the run's next model call.
func toolChoice(s AgentState) core.ToolChoice {
	choice := core.ToolChoiceAuto
	if o := s.Run.Options; o != nil && o.ToolChoice != core.ToolChoiceWordAuto {
		choice = o.ToolChoice
	}
	if s.Profile.Model.Info().LacksParameter(llm.ForcedTools) && choice.Forced() { // a fallback
		choice = core.ToolChoiceAuto
	}
	calls := s.Iteration()
	switch {
	case len(s.Profile.Tools) == 0:
		return core.ToolChoiceAuto
	case choice.Forced() && s.owesClientCall() && calls < s.Profile.MaxIterations(): // the last call has the client's tools alone
		return choice
	case s.isLastCall(): // the last word is text
		return core.ToolChoiceNone
	case choice.Forced() && countAnswers(s.sinceCall(s.isSince)) > 0: // else the run would not end
		return core.ToolChoiceAuto
	}
	return choice
}

// isLastCall reports whether the run may call the model once more at most.
func (s AgentState) isLastCall() bool { return s.Iteration()+1 >= s.Profile.MaxIterations() }

// owesClientCall reports whether the client of the run requires a call of a tool and has got none of
// its own: it does not see those of the agent's tools.
func (s AgentState) owesClientCall() bool {
	o := s.Run.Options
	if o == nil || o.ToolChoice != core.ToolChoiceRequired || len(o.Tools) == 0 {
		return false
	}
	return !slices.ContainsFunc(s.sinceCall(s.isSince), func(m core.Message) bool {
		return slices.ContainsFunc(m.ToolCalls, func(c core.ToolCall) bool { return s.Run.HasClientTool(c.Name) })
	})
}

// recordCall books one call and lets the calibration learn from it.
func (n *LLM) recordCall(s AgentState, sent contextwindow.PromptSize, res llm.Response, err error, start time.Time) core.ModelCall {
	info := s.Profile.Model.Info()
	m := info.NewCall(core.PurposeAnswer, sent.Total(), res, err, start)
	m.ID, m.Owner, m.User = core.NewID[string](), s.Run.Owner, s.Run.User
	m.SessionID, m.RunID, m.Agent = s.Run.SessionID, s.Run.ID, s.Run.Agent
	if res.Usage != nil {
		n.Calibrator.Fitted(info.Name, res.Usage.InputTokens+res.Usage.OutputTokens)
		if sent.Comparable() {
			n.Calibrator.Observe(info.Name, s.Session.ID, sent.Counted(), res.Usage.InputTokens)
		}
	}
	return m
}

// discardDraft takes back what a broken stream had said. It is stored, and so is the id of
// the message that takes its place: whoever was not there at that moment must hear of
// it, and so must the next attempt if this one dies.
func (n *LLM) discardDraft(ctx context.Context, s AgentState, c call, e *llm.Error, next core.MessageID) error {
	w := newWrite(s)
	w.Next = next
	w.Events = []core.Event{core.NewEvent(s.Run.SessionID, s.Run.ID, core.EventMessageDiscarded,
		core.DiscardedData{MessageID: c.id, Reason: string(e.Kind)})}
	return n.write(ctx, w, "take half an answer back")
}

// storeAnswer writes the answer; one without tool calls ends the run with it.
func (n *LLM) storeAnswer(ctx context.Context, s AgentState, c call) (_ AgentState, err error) {
	m := core.Message{
		ID: c.id, SessionID: s.Run.SessionID, Owner: s.Run.Owner, OnPath: true, Role: core.RoleAssistant,
		Content: c.response.Text, Status: core.MessageComplete,
		Model: s.Profile.Model.Info().Name, FinishReason: c.response.Finish, Source: s.Run.Input.Source,
		RunID: s.Run.ID, CreatedAt: core.Now(),
	}
	if len(c.response.ToolCalls) > 0 {
		m.ToolCalls = sendableCalls(c.response.ToolCalls, s.History, s.RunMessages)
	}
	m.Parts = n.boundParts(c, s.RunMessages)
	isReasoning := func(p core.Part) bool { return p.Type == core.PartReasoning }
	if c.response.Reasoning != "" && !slices.ContainsFunc(m.Parts, isReasoning) {
		m.Parts = append(m.Parts, core.Part{Type: core.PartReasoning, Text: c.response.Reasoning})
	}
	m.TokenCount = n.Counter.Message(m)
	w := newWrite(s)
	w.Messages, w.ModelCalls, w.Usage = []core.Message{m}, c.records, sumUsage(c.records)
	if c.warning != nil {
		w.Events = []core.Event{core.NewEvent(s.Run.SessionID, s.Run.ID, core.EventContextWarning, *c.warning)}
		s.Measures = s.Measures.withMeasure("", c.warning.Reason)
	}
	if slices.ContainsFunc(m.Parts, func(p core.Part) bool { return p.Setup != "" }) {
		w.Setup = n.Compactor.NewSetup(c.turn)
	}
	if len(m.ToolCalls) == 0 {
		w.End = &core.RunEnd{Status: core.RunSucceeded, AnswerID: m.ID}
	}
	for _, tc := range m.ToolCalls {
		if approvalMode(s, tc.Name) == "" { // else tool_node tells it, when it knows
			w.Events = append(w.Events, toolStarted(s, tc))
		}
	}
	if w.Context, err = n.contextReport(s, c); err != nil {
		return s, err
	}
	written, err := n.Journal.Write(ctx, w)
	if err != nil {
		return s, fmt.Errorf("store answer: %w", err)
	}
	s = s.WithRunMessages(written.Messages)
	if w.End != nil && written.Known != nil { // nobody else has written since the run began
		n.Tails.storeTail(s, written.Events[len(written.Events)-1].Seq)
	}
	n.Journal.Publish(ctx, written.Events) // who reads the end may send the next message, which needs the tail
	return s, nil
}
