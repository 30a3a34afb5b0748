package compaction

import (
	"context"
	"fmt"
	"time"

	"bobbin/app/core"
)

// Only one summary of a session is made at a time across all processes: its maker holds a
// lease on the session row, by the database's clock. It takes the lease before it calls the
// model and releases it afterwards; the lease of a process that died expires.

// The times of a lease.
const (
	leaseMargin  = 30 * time.Second // by which a lease outlasts the model call
	storeTimeout = 5 * time.Second  // to release a lease, also after the caller has gone
)

// summaryLease is the exclusive right to make summaries of one session.
type summaryLease struct {
	k      *Compactor
	scope  core.Tenant
	id     core.SessionID
	holder string
}

// acquireLease takes the session's lease; nil = another holder has it.
func (k *Compactor) acquireLease(ctx context.Context, tenant core.Tenant, id core.SessionID) (*summaryLease, error) {
	p := &summaryLease{k: k, scope: tenant, id: id, holder: k.Worker + "/" + core.NewID[string]()}
	ok, err := p.takeOrExtend(ctx)
	if err != nil {
		p.releaseLease(ctx) // it may have been acquired
	}
	if err != nil || !ok {
		return nil, err
	}
	return p, nil
}

// takeOrExtend takes or extends the lease and reports whether we hold it.
func (p *summaryLease) takeOrExtend(ctx context.Context) (bool, error) {
	got, err := p.k.Stores.Sessions.LeaseSummary(ctx, p.scope, p.id, p.holder, max(p.k.SummaryTime, p.k.BackgroundTime)+leaseMargin)
	if err != nil {
		return false, fmt.Errorf("lease the summary: %w", err)
	}
	if got == core.GrantTakenOver {
		p.k.Observer.Count(core.CountTakeovers, 1, core.WorkSummary)
	}
	return got.OK(), nil
}

// renewLease extends the lease for another summary. ErrStale: it expired and has another
// holder.
func (p *summaryLease) renewLease(ctx context.Context) error {
	ok, err := p.takeOrExtend(ctx)
	outcome := "renewed"
	switch {
	case err != nil:
		outcome = "failed"
	case !ok:
		outcome, err = "lost", core.Errorf(core.ErrStale, "the lease for a summary of session %s was lost", p.id)
	}
	p.k.Observer.Count(core.CountRenewals, 1, core.WorkSummary, outcome)
	return err
}

// releaseLease releases the lease. If that fails, the lease expires by itself.
func (p *summaryLease) releaseLease(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := p.k.Stores.Sessions.FreeSummary(ctx, p.id, p.holder); err != nil {
		p.k.Logger.WarnContext(ctx, "summary lease not released", "session_id", p.id, "err", err)
	}
}
