package nodes

import (
	"context"
	"errors"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// failRun books the failed calls and returns the error that ends the run. A call
// that was canceled while the model spoke has its price too.
func (n *LLM) failRun(ctx context.Context, s AgentState, c call, e *llm.Error) error {
	if e.Kind == llm.KindCanceled && (!c.hasOutput() || !errors.Is(context.Cause(ctx), core.ErrCanceled)) {
		return e
	}
	n.recordCalls(ctx, s, c)
	return e
}

// recordCalls writes the calls so far into the books, which no other write of the run takes
// along, with the report of the last prompt.
func (n *LLM) recordCalls(ctx context.Context, s AgentState, c call) {
	w := newWrite(s)
	w.ModelCalls, w.Usage = c.records, sumUsage(c.records)
	if c.turn.Profile.Model != nil { // nil = no prompt was made
		if report, err := n.contextReport(s, c); err == nil {
			w.Context = report
		}
	}
	if _, err := n.Journal.Append(ctx, w); err != nil {
		n.Logger.WarnContext(ctx, "model call not booked", "run_id", s.Run.ID, "err", err)
	}
}

// sumUsage adds up what the calls cost.
func sumUsage(records []core.ModelCall) core.Usage {
	var u core.Usage
	for _, r := range records {
		u = u.Add(r.Usage)
	}
	return u
}
