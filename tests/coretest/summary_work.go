package coretest

import (
	"context"
	"time"

	"bobbin/app/core"
)

// SummaryWork returns the state of the session's summary work.
func (r Sessions) SummaryWork(ctx context.Context, tenant core.Tenant, id core.SessionID) (w core.SummaryWork, err error) {
	err = r.s.inSession(ctx, "SummaryWork", tenant, id, func(c *Conversation) error {
		w = core.SummaryWork{Revision: c.Session.PromptRevision, Busy: time.Now().Before(c.Lease.Until), Breaker: c.Breaker}
		if w.Busy {
			since := c.Lease.Since
			w.Since = &since
		}
		if until := c.Breaker.Until; until != nil && !time.Now().Before(*until) {
			w.Breaker.Until = nil
		}
		for _, v := range c.Summaries {
			if v.State == core.SummaryPrepared {
				w.Prepared = v.AsVersion()
			}
		}
		return nil
	})
	return w, err
}

// SummaryFailed stores a failed attempt at a summary.
func (r Sessions) SummaryFailed(ctx context.Context, tenant core.Tenant, f core.SummaryFailure) (events []core.Event, err error) {
	err = r.s.inSession(ctx, "SummaryFailed", tenant, f.SessionID, func(c *Conversation) error {
		if f.Reason != "" {
			c.countFailure(f.Reason)
		}
		c.Calls = append(c.Calls, f.ModelCalls...)
		c.emit(f.Events...)
		events = c.fresh
		return nil
	})
	return events, err
}

// countFailure counts a failure of the summary model.
func (c *Conversation) countFailure(reason string) {
	c.Breaker.Failures++
	c.Breaker.Reason = reason
	if c.Breaker.Failures >= core.BreakerFailures {
		until := time.Now().Add(core.BreakerTime)
		c.Breaker.Until = &until
	}
}

// LeaseSummary lets one holder at a time summarize the session.
func (r Sessions) LeaseSummary(ctx context.Context, tenant core.Tenant, id core.SessionID, holder string, d time.Duration) (got core.LeaseResult, err error) {
	err = r.s.inSession(ctx, "LeaseSummary", tenant, id, func(c *Conversation) error {
		now := time.Now()
		since := now
		switch {
		case c.Lease.Holder == holder:
			got, since = core.GrantGiven, c.Lease.Since
		case c.Lease.Holder == "":
			got = core.GrantGiven
		case !now.Before(c.Lease.Until):
			got = core.GrantTakenOver
		}
		if got.OK() {
			c.Lease = Lease{Holder: holder, Since: since, Until: now.Add(d)}
		}
		return nil
	})
	return got, err
}

// FreeSummary ends the holder's lease.
func (r Sessions) FreeSummary(ctx context.Context, id core.SessionID, holder string) error {
	return r.s.transact(ctx, "FreeSummary", func() error {
		if c := r.s.conversations[id]; c != nil && c.Lease.Holder == holder {
			c.Lease = Lease{}
		}
		return nil
	})
}
