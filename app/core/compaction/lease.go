package compaction

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bobbin/app/core"
)

// Making summaries of a session is for one at a time: in this process (flights), and
// in all processes by a lease on the session row, by the database's clock. The lease
// is taken before the model is called and given back after, whatever came of it; that
// of a process that died ends by itself.

// The clocks of waiting for a lease that another process has, and of a lease.
const (
	firstPoll   = 50 * time.Millisecond
	longestPoll = 500 * time.Millisecond
	leaseMargin = 30 * time.Second // that a lease lasts longer than the model may take
	storeTime   = 5 * time.Second  // to give a lease back, also when nobody waits any more
)

// pass is the right to make summaries of one session.
type pass struct {
	k       *Keeper
	scope   core.Scope
	id      core.SessionID
	holder  string
	release func()
}

// errLate is the cause of a wait that took too long.
var errLate = errors.New("another summary of the session takes too long")

// enter waits until nobody else makes a summary of the session, but not longer than
// most; 0 = it does not wait. A nil pass says that somebody still does.
func (k *Keeper) enter(ctx context.Context, scope core.Scope, id core.SessionID, most time.Duration) (*pass, error) {
	limited, cancel := context.WithTimeoutCause(ctx, most, errLate)
	defer cancel()
	release, ok := k.flights.tryAcquire(id)
	if !ok && most > 0 {
		var err error
		if release, err = k.flights.acquire(limited, id); err != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if release == nil {
		return nil, nil
	}
	p := &pass{k: k, scope: scope, id: id, holder: k.Worker + "/" + core.NewID[string](), release: release}
	ok, err := p.lease(ctx)
	for delay := firstPoll; err == nil && !ok && pause(limited, delay); delay = min(2*delay, longestPoll) {
		ok, err = p.lease(ctx)
	}
	switch {
	case ok:
		return p, nil
	case err == nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	p.leave(ctx)
	return nil, err
}

// lease takes the lease, or lengthens it, and reports whether it is ours.
func (p *pass) lease(ctx context.Context) (bool, error) {
	got, err := p.k.Stores.Sessions.LeaseSummary(ctx, p.scope, p.id, p.holder, max(p.k.SummaryTime, p.k.BackgroundTime)+leaseMargin)
	if err != nil {
		return false, fmt.Errorf("lease the summary: %w", err)
	}
	if got == core.GrantTakenOver {
		p.k.Observer.TookOver(core.WorkSummary, 1)
	}
	return got.OK(), nil
}

// renew lengthens the lease for another summary. ErrStale: it ended, and somebody
// else has it.
func (p *pass) renew(ctx context.Context) error {
	if p == nil {
		return nil
	}
	ok, err := p.lease(ctx)
	if ok {
		p.k.Observer.Renewed(core.WorkSummary, 1, 0, nil)
	} else {
		p.k.Observer.Renewed(core.WorkSummary, 0, 1, err)
	}
	if err == nil && !ok {
		err = core.Errorf(core.ErrStale, "the lease for a summary of session %s was lost", p.id)
	}
	return err
}

// leave gives the right back. A lease that cannot be given back ends by itself.
func (p *pass) leave(ctx context.Context) {
	if p == nil {
		return
	}
	defer p.release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	if err := p.k.Stores.Sessions.FreeSummary(ctx, p.id, p.holder); err != nil {
		p.k.Logger.WarnContext(ctx, "lease of a summary not given back", "session_id", p.id, "err", err)
	}
}

// pause waits and reports false if ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
