package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
)

const (
	// oneRungLower is what a prompt may have of the one before it that was refused.
	oneRungLower = 0.85
	// nearWindow is the share of the window from which a refusal without numbers says
	// that the count was wrong. Below it, the window must be smaller than believed.
	nearWindow = 0.75
	// minSuspected is the smallest prompt, in the model's tokens, that may be too long
	// for a provider that does not say so.
	minSuspected = 1024
	// suspectedShare is the share of the window from which a prompt may be too long, whatever the
	// model has accepted.
	suspectedShare = 0.25
)

// handleRefusal prepares the next try after the provider refused the prompt as too long:
// a smaller prompt, judged by what the refusal taught. It is told
// immediately, and in the run's report.
func (n *LLM) handleRefusal(ctx context.Context, s *AgentState, t *attempts, c call, e *llm.Error) error {
	t.overflows++
	t.turn.Trial, t.suspected = false, nil
	near := float64(c.promptSize()) >= nearWindow*float64(c.decision.Budget.Window)
	switch {
	case e.Limit > 0:
		t.turn.Window, t.refusedSize = e.Limit, 0
	case e.Requested > 0 || near && t.overflows == 1:
	default:
		t.planForSmallerWindow(c)
	}
	if t.refusedSize == 0 {
		d, raw := c.decision, c.sent.Total()
		isSmaller := e.Limit > 0 && e.Limit < d.Budget.Window
		if isSmaller {
			n.Calibrator.Told(c.modelName(), s.Session.ID, e.Limit)
		}
		ratio := 0.0
		switch {
		case e.Prompt > 0:
			ratio = float64(e.Prompt) / float64(raw)
		case e.Requested > 0:
			ratio = float64(e.Requested) / float64(raw+d.MaxOutput)
		}
		// Where the window turned out to be smaller, and our own count agrees that the prompt did not fit that, there is
		// nothing wrong with the count.
		if explained := isSmaller && d.Total+d.MaxOutput > e.Limit; !explained || ratio == 0 || ratio > d.Factor {
			n.Calibrator.Tighten(c.modelName(), s.Session.ID, ratio)
		}
	}
	t.shrinkPrompt(c)
	reason := refusalMessage(c, e)
	s.Measures = s.Measures.Refused(reason)
	return n.warnRefused(ctx, *s, c, e, reason+". It is made smaller and sent again.")
}

// mayBeTooLong reports whether a request that was refused for no clear reason may
// have been too long: it was large for the model, by the window that is believed or,
// without images, which may be the reason, by what the model has accepted. Some servers say of such a prompt, each time, that they are
// overloaded: one that is larger than all that the model has accepted is tried shorter, twice, if
// the session's last message met that, too.
func (n *LLM) mayBeTooLong(s *AgentState, t *attempts, c call, e *llm.Error) bool {
	if c.turn.Profile.Model == nil || c.hasOutput() || c.decision.Total < minSuspected || t.overflows > maxOverflows {
		return false
	}
	size, accepted := c.decision.Total, n.Calibrator.LargestFit(c.modelName())
	if e.Unclear {
		return t.overflows < maxOverflows && (size > accepted && c.sent.Media == 0 || float64(size) > suspectedShare*float64(c.decision.Budget.Window))
	}
	return e.Kind == llm.KindOverloaded && e.RetryAfter == 0 && len(t.spare) == 0 && size > accepted &&
		n.Calibrator.Overload(c.modelName(), s.Session.ID) != tokens.NotOverloaded
}

// retryShorter prepares a try with a shorter prompt, of which nothing is kept. Only if the
// provider accepts it, the prompt was too long; otherwise the refusal is what it was.
func (n *LLM) retryShorter(ctx context.Context, s AgentState, t *attempts, c call, e *llm.Error) error {
	t.overflows++
	if !e.Unclear { // there is one other try: the server may just be busy
		t.overflows = max(t.overflows, maxOverflows)
	}
	if t.suspected == nil {
		t.suspected, c.err = &c, e
	}
	t.planForSmallerWindow(c)
	t.turn.Trial = true
	t.shrinkPrompt(c)
	return n.warnRefused(ctx, s, c, e, fmt.Sprintf(
		"%s refused a prompt of %d tokens for an unclear reason%s. A shorter one is tried, in case it is too long.", c.modelName(), c.sent.Used(c.decision), quoteProvider(e)))
}

// isOverload reports whether the provider said that it is overloaded, and a shorter prompt was the last try.
func (t *attempts) isOverload() bool { return t.suspected != nil && !t.suspected.err.Unclear }

// planForSmallerWindow plans the next try for a window of half of what the refused prompt and its answer
// have, then for half of that. The last one is at most the window of an unknown model.
func (t *attempts) planForSmallerWindow(c call) {
	if t.refusedSize == 0 {
		t.refusedSize, t.turn.Window = c.promptSize(), c.promptSize()
	}
	t.turn.Window /= 2
	if t.overflows == maxOverflows {
		t.turn.Window = min(t.turn.Window, contextwindow.UnknownWindow)
	}
}

// learnSupposed learns from an accepted prompt that the window that was supposed for it holds. A server
// that said that it is overloaded may just have recovered: it has to say so of two messages in a row.
func (n *LLM) learnSupposed(s *AgentState, t *attempts, c call) {
	overload := tokens.NotOverloaded
	if t.isOverload() && n.Calibrator.Overload(c.modelName(), s.Session.ID) != tokens.OverloadedAtFirst {
		overload = tokens.OverloadedAtFirst
	}
	n.Calibrator.SetOverload(c.modelName(), s.Session.ID, overload)
	if t.refusedSize == 0 || overload != tokens.NotOverloaded {
		return
	}
	if t.suspected != nil {
		s.Measures = s.Measures.Refused(refusalMessage(*t.suspected, t.suspected.err))
	}
	n.Calibrator.LearnWindow(c.modelName(), s.Session.ID, t.turn.Window, t.refusedSize)
}

// shrinkPrompt makes the next prompt smaller than the refused one.
func (t *attempts) shrinkPrompt(c call) {
	t.turn.Cap = max(int(oneRungLower*float64(c.decision.Total)/c.decision.Factor), 1)
}

// warnRefused logs a refused prompt and tells the watchers of the session.
func (n *LLM) warnRefused(ctx context.Context, s AgentState, c call, e *llm.Error, text string) error {
	size := c.sent.Used(c.decision)
	n.Logger.WarnContext(ctx, "prompt refused as too long", "run_id", s.Run.ID, "model", c.modelName(),
		"estimated", size, "limit", e.Limit, "requested", e.Requested, "unclear", e.Unclear, "status", e.Status, "err", e.Message)
	w := newWrite(s)
	w.Events = []core.Event{core.NewEvent(s.Run.SessionID, s.Run.ID, core.EventContextWarning, core.ContextData{TokensBefore: size, Trigger: "overflow", Reason: text})}
	return n.write(ctx, w, "tell of the refused prompt")
}

// modelName returns the name of the model that was called.
func (c call) modelName() string { return c.turn.Profile.Model.Info().Name }

// promptSize returns the tokens of the prompt and its answer, as the model counts.
func (c call) promptSize() int { return c.decision.Total + c.decision.MaxOutput }

// refusalMessage says that the provider refused a prompt, with its numbers and its words.
func refusalMessage(c call, e *llm.Error) string {
	limit, counted := "", ""
	if e.Limit > 0 {
		limit = fmt.Sprintf("; its limit is %d", e.Limit)
	}
	if e.Requested > 0 {
		counted = fmt.Sprintf(", counted as %d", e.Requested)
	}
	return fmt.Sprintf("%s refused a prompt of %d tokens as too long%s%s%s", c.modelName(), c.sent.Used(c.decision), counted, limit, quoteProvider(e))
}

// quoteProvider returns the provider's words as they follow a sentence.
func quoteProvider(e *llm.Error) string {
	if words := e.Words(); words != "" {
		return fmt.Sprintf(" (%q)", words)
	}
	return ""
}

// contextReport returns the context report of the run as it is stored.
func (n *LLM) contextReport(s AgentState, c call) (json.RawMessage, error) {
	m, report := s.Measures, n.Compactor.Describe(c.turn, c.decision, c.sent) // of the last prompt, with what all of them needed
	for _, rung := range report.Rungs {
		m = m.withMeasure(rung, "")
	}
	for _, reason := range report.Reasons {
		m = m.withMeasure("", reason)
	}
	report.Overflows = m.Overflows
	report.Rungs, report.Reasons = append([]string{}, m.Rungs...), append([]string{}, m.Reasons...)
	report.Digests = c.digests
	raw, err := json.Marshal(report)
	if err != nil {
		return nil, fmt.Errorf("context report: %w", err)
	}
	return raw, nil
}

// attempts is how often, and with what, one call was tried.
type attempts struct {
	turn   compaction.Turn
	spare  []llm.Model      // fallbacks that were not tried yet
	books  []core.ModelCall // calls that are not booked yet
	failed *llm.Error       // why there was a fallback; nil = there was none
	last   call             // that was made; its decision is empty before the first

	overflows, restarts int                // of the present model
	refusedTools        bool               // its provider did not take changes of the tools
	refusedSize         int                // tokens of the prompt and its answer from whose refusal turn.Window is supposed; 0 = it is not
	suspected           *call              // was refused first, for an unclear reason; nil = none was
	refused             []core.RefusedTurn // nil = not asked for
	leavesOut           []string           // what its provider refused, now or earlier in the run, and the next tries leave out
	refusedNative       bool               // the provider did not take back its compaction: the summary's words are sent instead
	next                core.MessageID     // takes the place of a message that was taken back; empty = none was

	warning *core.ContextData // of what was refused now, for when a try without it is answered; nil = there is none
}

// canFallBack reports whether another model may do what this one could not: the
// failure is the provider's or the account's, not the request's.
func canFallBack(e *llm.Error) bool {
	return slices.Contains([]llm.ErrorKind{
		llm.KindOverloaded, llm.KindRateLimit, llm.KindTimeout, llm.KindNetwork, llm.KindTruncated, llm.KindAuth, llm.KindNotFound,
	}, e.Kind)
}

// fallBack goes on with the next fallback, for this call only. What has failed is
// booked and told at once; the prompt is planned anew for the other window.
func (n *LLM) fallBack(ctx context.Context, s *AgentState, t *attempts, e *llm.Error) error {
	from, next := s.Profile.Model.Info().Name, t.spare[0]
	to := next.Info().Name
	w := newWrite(*s)
	w.ModelCalls, w.Usage = t.books, sumUsage(t.books)
	w.Events = []core.Event{core.NewEvent(s.Run.SessionID, s.Run.ID, core.EventContextWarning, core.ContextData{
		Trigger: "fallback", Reason: fmt.Sprintf("The model %s cannot answer (%s); %s takes its place for this answer.", from, e.Kind, to),
	})}
	if err := n.write(ctx, w, "fall back to "+to); err != nil {
		return err
	}
	n.Logger.WarnContext(ctx, "model replaced by its fallback", "run_id", s.Run.ID, "model", from, "kind", e.Kind, "fallback", to)
	s.Profile.Model, t.turn.Profile.Model = next, next
	t.turn.Cap, t.turn.Window, t.turn.Trial = 0, 0, false // were the other model's
	t.refusedSize, t.suspected = 0, nil
	t.spare, t.books, t.failed = t.spare[1:], nil, e
	t.overflows, t.restarts, t.refusedTools, t.leavesOut, t.warning = 0, 0, false, nil, nil
	return nil
}
