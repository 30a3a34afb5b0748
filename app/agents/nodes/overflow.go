package nodes

import (
	"context"
	"encoding/json"
	"fmt"

	"bobbin/app/agents/state"
	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// oneRungLower is what a prompt may have of the one before it that was refused.
const oneRungLower = 0.85

// refused prepares the next try after the provider refused the prompt as too long
// (CONTEXT § 4): a smaller prompt, judged by what the refusal taught. It is told at
// once, and in the run's report.
func (n *Caller) refused(ctx context.Context, s *state.AgentState, t *tries, c call, e *llm.Error) error {
	t.overflows++
	name, size := t.turn.Profile.Model.Info().Name, c.sent.Used(c.decision)
	n.learn(name, s.Session.ID, c, e)
	if e.Limit > 0 {
		t.turn.Window = e.Limit
	}
	t.turn.Cap = max(int(oneRungLower*float64(c.decision.Total)/c.decision.Factor), 1)
	n.logger.WarnContext(ctx, "prompt refused as too long", "run_id", s.Run.ID, "model", name,
		"estimated", size, "limit", e.Limit, "requested", e.Requested)
	reason := refusal(c, e)
	s.Measures = s.Measures.Refused(reason)
	w := write(*s)
	w.Events = []core.Event{core.NewEvent(s.Run.SessionID, s.Run.ID, core.EventContextWarning, core.ContextData{
		TokensBefore: size, Trigger: "overflow", Reason: reason + ". It is made smaller and sent again.",
	})}
	if _, err := n.journal.Append(ctx, w); err != nil {
		return fmt.Errorf("tell of the refused prompt: %w", err)
	}
	return nil
}

// refusal says what the provider said, in our words.
func refusal(c call, e *llm.Error) string {
	limit, counted := "", ""
	if e.Limit > 0 {
		limit = fmt.Sprintf("; its limit is %d", e.Limit)
	}
	if e.Requested > 0 {
		counted = fmt.Sprintf(", counted as %d", e.Requested)
	}
	return fmt.Sprintf("%s refused a prompt of %d tokens as too long%s%s",
		c.turn.Profile.Model.Info().Name, c.sent.Used(c.decision), counted, limit)
}

// learn lets the calibration learn from a refusal. Where the window turned out to be
// smaller, and our own count agrees that the prompt did not fit that, there is nothing
// wrong with the count.
func (n *Caller) learn(model string, session core.SessionID, c call, e *llm.Error) {
	d, raw := c.decision, c.sent.Total()
	if e.Limit > 0 && e.Limit < d.Budget.Window {
		n.calibrator.Told(model, e.Limit)
	}
	ratio := 0.0
	switch {
	case e.Prompt > 0:
		ratio = float64(e.Prompt) / float64(raw)
	case e.Requested > 0:
		ratio = float64(e.Requested) / float64(raw+d.MaxOutput)
	}
	explained := e.Limit > 0 && e.Limit < d.Budget.Window && d.Total+d.MaxOutput > e.Limit
	if !explained || ratio == 0 || ratio > d.Factor {
		n.calibrator.Tighten(model, session, ratio)
	}
}

// report returns the context report of the run as it is stored.
func (n *Caller) report(s state.AgentState, c call) (json.RawMessage, error) {
	raw, err := json.Marshal(s.Measures.In(n.keeper.Describe(c.turn, c.decision, c.sent)))
	if err != nil {
		return nil, fmt.Errorf("context report: %w", err)
	}
	return raw, nil
}
