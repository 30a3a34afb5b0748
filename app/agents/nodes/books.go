package nodes

import (
	"context"
	"errors"

	"bobbin/app/agents/state"
	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// budget knows what may still be spent.
type budget interface {
	// Check returns core.ErrSpendLimit when the owner may call no model now.
	Check(ctx context.Context, owner string) error
}

// Within returns the node with a budget, which is asked before each call.
func (n *Caller) Within(b budget) *Caller {
	n.budget = b
	return n
}

// allowed returns why the run may call no model now; what it called before is
// booked then.
func (n *Caller) allowed(ctx context.Context, s state.AgentState, t *tries) error {
	if n.budget == nil {
		return nil
	}
	err := n.budget.Check(ctx, s.Run.Owner)
	if err != nil && len(t.books) > 0 {
		n.book(ctx, s, t.last)
	}
	return err
}

// failed books the failed calls and returns the error that ends the run. A call
// that was canceled while the model spoke has its price too.
func (n *Caller) failed(ctx context.Context, s state.AgentState, c call, e *llm.Error) error {
	if e.Kind == llm.KindCanceled && (!c.began() || !errors.Is(context.Cause(ctx), core.ErrCanceled)) {
		return e
	}
	n.book(ctx, s, c)
	return e
}

// gaveUp books the calls before an error that is not a model's: such as that nothing
// can be sent any more after a prompt was refused.
func (n *Caller) gaveUp(ctx context.Context, s state.AgentState, t *tries, err error) error {
	if len(t.books) > 0 && errors.Is(err, core.ErrContextFloor) {
		n.book(ctx, s, t.last)
	}
	return err
}

// book writes the calls so far into the books, which no other write of the run takes
// along, with the report of the last prompt.
func (n *Caller) book(ctx context.Context, s state.AgentState, c call) {
	w := write(s)
	w.ModelCalls, w.Usage = c.records, usage(c.records)
	if c.turn.Profile.Model != nil { // nil = no prompt was made
		if report, err := n.report(s, c); err == nil {
			w.Context = report
		}
	}
	if _, err := n.journal.Append(ctx, w); err != nil {
		n.logger.WarnContext(ctx, "model call not booked", "run_id", s.Run.ID, "err", err)
	}
}

// usage adds up what the calls cost.
func usage(records []core.ModelCall) core.Usage {
	var u core.Usage
	for _, r := range records {
		u = u.Add(r.Usage)
	}
	return u
}
