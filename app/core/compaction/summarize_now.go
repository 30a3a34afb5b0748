package compaction

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/redact"
)

// Summarize makes a summary now, whatever the triggers say, in as many calls as that takes,
// each committed as a version. Focus is what the user wants kept above all; empty = nothing.
// It returns the last version when all is covered. After BackgroundTime it returns the last
// version so far and continues in the background.
//
// Errors: ErrConflict while another summary of the session is being made or was committed
// first, ErrUnprocessable when there is nothing to summarize, ErrNotFound.
func (k *Compactor) Summarize(ctx context.Context, tenant core.Tenant, id core.SessionID, focus string) (core.Summary, error) {
	o := &manualOrder{k: k, scope: core.Tenant{Owner: tenant.Owner}, id: id, first: make(chan struct{})}
	o.focus = redact.Text(focus) // it is stored with the summary
	if name, committed, err := core.CommittedResult(ctx); err != nil {
		return core.Summary{}, err
	} else if committed {
		return o.committedResult(ctx, tenant, core.SummaryID(name))
	}
	_, in, err := k.loadInput(ctx, tenant, id)
	if err != nil {
		return core.Summary{}, err
	}
	in.Force = true
	d, _ := contextwindow.Plan(in)
	if d.Summarize == nil {
		return core.Summary{}, core.Errorf(core.ErrUnprocessable, "there is nothing to summarize: the conversation has fewer than two finished turns since the last summary")
	}
	o.through = d.Summarize.ThroughSeq
	if o.lease, err = k.acquireLease(ctx, tenant, id); err != nil {
		return core.Summary{}, err
	}
	if o.lease == nil {
		return core.Summary{}, core.Errorf(core.ErrConflict, "a summary of this session is already in progress: wait for it to finish")
	}
	return o.wait(ctx, k.jobs.beginCall(ctx, o.makeAll))
}

// manualOrder is a summary on request, made in as many calls as it takes.
type manualOrder struct {
	k       *Compactor
	scope   core.Tenant
	id      core.SessionID
	focus   string
	through int64 // seq of the last message to cover
	lease   *summaryLease

	last  atomic.Pointer[core.Summary] // the last version; nil = none so far
	first chan struct{}                // closed when there is one
}

// committedResult returns the result that an earlier execution of a request with an idempotency key committed. What
// that does not cover continues in the background.
func (o *manualOrder) committedResult(ctx context.Context, tenant core.Tenant, summary core.SummaryID) (core.Summary, error) {
	found, err := o.k.Stores.Summaries.Find(ctx, tenant, o.id, []core.SummaryID{summary})
	if err == nil && len(found) == 0 {
		err = core.Errorf(core.ErrNotFound, "summary %s no longer exists", summary)
	}
	if err != nil {
		return core.Summary{}, err
	}
	if s := found[0]; s.ThroughSeq < s.OrderedSeq && (s.State == core.SummaryActive || s.State == core.SummaryDropped) {
		o.through, o.focus = s.OrderedSeq, s.Focus
		if o.lease, err = o.k.acquireLease(ctx, o.scope, o.id); err == nil && o.lease != nil {
			o.k.jobs.beginCall(core.WithoutKeyedWork(ctx), o.makeAll)
		}
	}
	return found[0], nil
}

// wait returns the last version when the work is done, or the last one so far when the
// request stops waiting. The first call has a limit of its own.
func (o *manualOrder) wait(ctx context.Context, c *call) (core.Summary, error) {
	limited, cancel := context.WithTimeout(ctx, o.k.BackgroundTime)
	defer cancel()
	select {
	case <-c.done:
	case <-limited.Done():
	}
	if o.last.Load() == nil && ctx.Err() == nil {
		select {
		case <-c.done:
		case <-o.first:
		case <-ctx.Done():
		}
	}
	if last := o.last.Load(); last != nil && !errors.Is(ctx.Err(), context.Canceled) {
		return *last, nil
	}
	return core.Summary{}, cmp.Or(c.wait(ctx), changedMeanwhile(core.ErrStale)) // which cancels it
}

// makeAll makes versions until all is covered.
func (o *manualOrder) makeAll(ctx context.Context) error {
	defer o.lease.releaseLease(ctx)
	e := &progress{lease: o.lease, manual: o, versionChosen: true}
	t, err := o.k.loadTurn(ctx, o.scope, o.id, core.PlanPreview{})
	for err == nil && t.Session.SummaryThroughSeq < o.through {
		e.committed, e.conflicts = core.Summary{}, 0
		if t, err = o.k.makeNext(ctx, t, e); err == nil && e.committed.ID == "" {
			return nil
		}
		if err == nil {
			last := e.committed
			if o.last.Swap(&last) == nil {
				close(o.first)
			}
			err = o.lease.renewLease(ctx)
		} else {
			err = changedMeanwhile(err)
		}
	}
	if err != nil {
		o.k.Logger.InfoContext(ctx, "requested summary is incomplete", "session_id", o.id, "err", err)
	}
	return err
}
