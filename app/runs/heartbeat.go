package runs

import (
	"context"
	"maps"
	"slices"
	"time"

	"bobbin/app/core"
)

// sendHeartbeat renews the leases and stops runs that were lost, or canceled through another
// process.
func (s *Runner) sendHeartbeat(ctx context.Context) {
	if !s.renewLeases(ctx) {
		return
	}
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	began := time.Now()
	runs, err := s.Store.CancelRequested(call, s.Worker)
	s.recordContact(err)
	if err != nil {
		s.Logger.WarnContext(ctx, "cancels not read", "err", err)
		return
	}
	for _, id := range runs {
		s.cancelLocal(id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// Older ones never arrived: their runs execute elsewhere or have ended.
	maps.DeleteFunc(s.earlyCancels, func(_ core.RunID, at time.Time) bool { return at.Before(began.Add(-heartbeatEvery)) })
}

// renewLeases renews the leases of all active runs, and reports false if it could not.
func (s *Runner) renewLeases(ctx context.Context) bool {
	held := map[core.RunID]int{} // attempts
	s.mu.Lock()
	for id, x := range s.active {
		if !x.released {
			held[id] = x.run.Attempt
		}
	}
	s.mu.Unlock()
	if len(held) == 0 {
		return true
	}
	ids := slices.Collect(maps.Keys(held))
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	lost, err := s.Store.Renew(call, s.Worker, ids)
	s.recordContact(err)
	s.recordLeaseWrite(err)
	if err != nil {
		s.Observer.Count(core.CountRenewals, 1, core.WorkRun, "failed")
		s.Logger.ErrorContext(ctx, "leases not renewed", "runs", len(ids), "err", err)
		return false
	}
	s.Observer.Count(core.CountRenewals, len(ids)-len(lost), core.WorkRun, "renewed")
	s.Observer.Count(core.CountRenewals, len(lost), core.WorkRun, "lost")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range lost {
		if x := s.active[id]; x != nil && x.run.Attempt == held[id] { // a newer one began after the store was asked
			x.cancel(errLost)
		}
	}
	return true
}

// startWait is how long a newly started process does not take over lapsed runs of others. A
// living process renews its leases within two heartbeats.
const startWait = 2 * heartbeatEvery

// databaseContact is what is known of the database's responses. Guarded by Service.mu.
type databaseContact struct {
	lastAnswer time.Time // wall clock, which keeps running while the machine sleeps
	waitUntil  time.Time // until then others may renew leases that have lapsed
	refused    bool      // the last write of a lease failed: nobody knows since when others can renew theirs
}

// recordContact records whether the database responded. During a pause longer than a heartbeat
// interval others may have lost their leases too: they get the time of one lease to renew them.
func (s *Runner) recordContact(err error) {
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case s.contact.lastAnswer.IsZero():
		s.contact.waitUntil = now.Add(startWait)
	case s.contact.isPaused(now):
		s.contact.waitUntil = now.Add(core.RunLease)
	}
	s.contact.lastAnswer = now.Round(0)
}

// recordLeaseWrite records whether a lease could be written. If one could not, others get the time
// of one lease, and two heartbeats from the first write that succeeds: while the table is locked,
// theirs cannot be renewed either, though the database responds to reads.
func (s *Runner) recordLeaseWrite(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	switch {
	case err != nil:
		s.contact.waitUntil = now.Add(core.RunLease)
	case s.contact.refused && s.contact.waitUntil.Before(now.Add(startWait)):
		s.contact.waitUntil = now.Add(startWait)
	}
	s.contact.refused = err != nil
}

// isPaused reports whether the last response is longer ago than a heartbeat.
func (r databaseContact) isPaused(now time.Time) bool {
	return now.Round(0).Sub(r.lastAnswer) > heartbeatEvery
}

// canTakeLapsed reports whether runs with lapsed leases may be taken over: not while the
// database is unavailable, when no process can renew a lease, nor soon after.
func (s *Runner) canTakeLapsed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	return !s.contact.isPaused(now) && !now.Before(s.contact.waitUntil)
}
