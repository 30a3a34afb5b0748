package runs

import (
	"context"
	"sync"
	"time"

	"bobbin/app/core"
)

// The clocks of Run. A lease holds for 30 s: it outlives two lost heartbeats. Lease and
// sweep together leave a second of the 35 in which a run is promised to be taken over.
const (
	heartbeatEvery = 10 * time.Second
	sweepEvery     = 4 * time.Second
	saveEvery      = time.Second
)

// Bounds of one sweep, and of a start.
const (
	sweepLimit  = 100
	resumeLimit = 100_000
)

// unwindTime is how long canceled runs have to return when the process stops.
const unwindTime = 10 * time.Second

// Run keeps the runs of this process alive until ctx ends: first it takes over
// what an earlier process of the same name left behind, then it renews leases,
// sweeps, and saves what runs have said so far. When ctx ends nothing new begins,
// runs at work get the grace period, and what is not finished then is handed
// back. It returns nil when all that is done. Call it once.
func (s *Service) Run(ctx context.Context) error {
	// The heart beats on while runs at work finish.
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	var clocks sync.WaitGroup
	clocks.Go(func() { every(alive, heartbeatEvery, s.heartbeat) })
	clocks.Go(func() { every(alive, saveEvery, s.journal.saveDrafts) })
	clocks.Go(func() { s.listen(alive) })
	if s.resume(ctx) {
		close(s.ready)
		every(ctx, sweepEvery, s.sweep)
	}
	s.drain(alive)
	stop()
	clocks.Wait()
	return nil
}

// every calls f every d until ctx ends.
func every(ctx context.Context, d time.Duration, f func(context.Context)) {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			f(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// resume takes over the runs that an earlier process of this name had, and claims
// for the sessions that wait. It tries until the database answers, and reports
// false if ctx ends before.
func (s *Service) resume(ctx context.Context) bool {
	for {
		runs, err := s.store.TakeOver(ctx, s.worker, true, resumeLimit)
		if err == nil {
			s.startAll(ctx, runs)
			_ = s.expire(ctx)
			_ = s.claimWaiting(ctx)
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		s.log.ErrorContext(ctx, "runs not taken over, trying again", "err", err)
		if pause(ctx, time.Second) != nil {
			return false
		}
	}
}

// heartbeat renews the leases and breaks off what was lost, or canceled through
// another process.
func (s *Service) heartbeat(ctx context.Context) {
	if !s.renew(ctx) {
		return
	}
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	began := time.Now()
	runs, err := s.store.CancelRequested(call, s.worker)
	if err != nil {
		s.log.WarnContext(ctx, "cancels not read", "err", err)
		return
	}
	for _, id := range runs {
		s.cancel(id)
	}
	s.forgetEarly(began.Add(-heartbeatEvery))
}

// renew renews the leases of all active runs, and reports false if it could not.
func (s *Service) renew(ctx context.Context) bool {
	ids := s.ids()
	if len(ids) == 0 {
		return true
	}
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	lost, err := s.store.Renew(call, s.worker, ids)
	s.observer.Renewed(core.WorkRun, len(ids)-len(lost), len(lost), err)
	if err != nil {
		s.log.ErrorContext(ctx, "leases not renewed", "runs", len(ids), "err", err)
		return false
	}
	for _, id := range lost {
		s.lose(id)
	}
	return true
}

// forgetEarly drops the remembered cancels of runs that never came: they run
// elsewhere or have ended.
func (s *Service) forgetEarly(before time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, at := range s.early {
		if at.Before(before) {
			delete(s.early, id)
		}
	}
}

// sweep looks for work that nobody has told of.
func (s *Service) sweep(ctx context.Context) {
	found := s.look(ctx)
	s.observer.Found(foundLapsed, found.lapsed)
	s.observer.Found(foundQueued, found.queued)
	s.observer.Found(foundExpired, found.expired)
}

// finds are numbers of things that a look has found.
type finds struct{ lapsed, queued, expired int }

// look takes over runs whose lease has passed, lets go on those that wait for a
// decision too long, and claims for sessions that wait.
// The leases are renewed first: a process that was suspended, or could not reach
// the database for a while, must not take over its own runs.
func (s *Service) look(ctx context.Context) finds {
	if !s.renew(ctx) {
		return finds{}
	}
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	runs, err := s.store.TakeOver(call, s.worker, false, sweepLimit)
	if err != nil {
		s.log.WarnContext(ctx, "lapsed runs not taken over", "err", err)
		return finds{}
	}
	s.startAll(ctx, runs)
	expired := s.expire(ctx)
	return finds{lapsed: len(runs), expired: expired, queued: s.claimWaiting(ctx)}
}

// expire closes the questions that nobody answered in time; their runs are queued. It
// returns how many there were.
func (s *Service) expire(ctx context.Context) (n int) {
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	events, err := s.store.ExpireApprovals(call, sweepLimit)
	if err != nil {
		s.log.WarnContext(ctx, "approvals not expired", "err", err)
	}
	s.journal.feed.Publish(ctx, events)
	for _, e := range events {
		if e.Type == core.EventApprovalDecided {
			n++
		}
	}
	return n
}

// startAll starts runs that were taken over.
func (s *Service) startAll(ctx context.Context, runs []core.Run) {
	s.observer.TookOver(core.WorkRun, len(runs))
	for _, run := range runs {
		s.log.WarnContext(ctx, "run taken over", "run_id", run.ID, "session_id", run.SessionID, "attempt", run.Attempt)
		s.Start(run) //nolint:contextcheck // a run is detached from whoever starts it
	}
}

// claimWaiting claims for sessions whose queue stands still, and returns for how many.
func (s *Service) claimWaiting(ctx context.Context) (n int) {
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	sessions, err := s.store.Waiting(call, sweepLimit)
	if err != nil {
		s.log.WarnContext(ctx, "waiting sessions not read", "err", err)
		return 0
	}
	for _, id := range sessions {
		if s.next(ctx, id) {
			n++
		}
	}
	return n
}

// drain ends the work: see Run.
func (s *Service) drain(ctx context.Context) {
	s.handBack(func(x *execution) bool { return !x.atWork })
	if !s.settle(s.limits.Grace) {
		s.handBack(func(*execution) bool { return true })
		if !s.settle(unwindTime) {
			s.log.ErrorContext(ctx, "runs do not stop", "runs", s.ids())
		}
	}
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := s.store.Release(call, s.worker); err != nil {
		s.log.ErrorContext(ctx, "leases not released", "err", err)
		return
	}
	s.wake(ctx, core.Signal{Free: true})
}

// handBack lets nothing new begin, and gives up the executions that match.
func (s *Service) handBack(match func(*execution) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	for _, x := range s.active {
		if match(x) {
			x.halt(errHandedBack)
		}
	}
}

// settle waits until all executions have left, for at most d, and reports
// whether they have.
func (s *Service) settle(d time.Duration) bool {
	all := make(chan struct{})
	go func() {
		s.wait.Wait()
		close(all)
	}()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-all:
		return true
	case <-t.C:
		return false
	}
}
