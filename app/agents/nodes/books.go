package nodes

import (
	"context"

	"bobbin/app/core"
)

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
