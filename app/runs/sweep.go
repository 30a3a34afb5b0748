package runs

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"bobbin/app/core"
)

// The intervals of Run. A lease lasts core.RunLease, which survives two lost heartbeats.
const (
	heartbeatEvery = 10 * time.Second
	sweepEvery     = 2 * time.Second
	saveEvery      = time.Second
)

// sweepLimit is how many rows one call of a sweep requests. A sweep repeats its calls while
// they return that many and slots are free.
const sweepLimit = 100

// Run keeps the runs of this process alive until ctx ends. It first takes over what an earlier
// process of the same replica left behind, then renews leases, sweeps, and saves partial texts.
// When ctx ends, nothing new begins, active runs get the grace period, and unfinished ones are
// handed back. It returns nil after that. Call it once.
func (s *Runner) Run(ctx context.Context) error {
	// Heartbeats continue while active runs finish.
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	var clocks sync.WaitGroup
	clocks.Go(func() { _ = core.Every(alive, heartbeatEvery, s.sendHeartbeat) })
	clocks.Go(func() { _ = core.Every(alive, saveEvery, s.Journal.saveDrafts) })
	if s.Signals != nil {
		clocks.Go(func() {
			s.Signals.Listen(alive, func(signal core.Wakeup) {
				if signal.Cancel != "" {
					s.cancelLocal(signal.Cancel)
				}
				if signal.Free { // one sweep serves all that arrive meanwhile: a cancel does not wait behind them
					core.Signal(s.sweepRequested)
				}
			})
		})
	}
	if s.resumeRuns(ctx) {
		close(s.ready)
		s.sweepLoop(ctx)
	}
	s.stopRuns(alive)
	stop()
	clocks.Wait()
	return nil
}

// sweepLoop sweeps at intervals, and when a sweep is requested, until ctx ends.
func (s *Runner) sweepLoop(ctx context.Context) {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.mu.Lock()
			known := s.backlog
			s.mu.Unlock()
			s.Observer.Count(core.CountFound, s.expireApprovals(ctx), foundExpired)
			s.waiting = nil // waiting sessions are read again
			lapsed, queued := s.sweepOnce(ctx)
			if !known { // no signal announced it
				s.Observer.Count(core.CountFound, lapsed, foundLapsed)
				s.Observer.Count(core.CountFound, queued, foundQueued)
			}
		case <-s.sweepRequested:
			s.sweepOnce(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// resumeRuns takes over the runs of earlier processes of this replica, and claims for the
// sessions that wait. It retries until the database responds, and reports false if ctx ends
// first.
func (s *Runner) resumeRuns(ctx context.Context) bool {
	for {
		_, err := s.takeOver(ctx)
		if err == nil {
			s.expireApprovals(ctx)
			s.claimWaiting(ctx)
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		s.Logger.ErrorContext(ctx, "runs not taken over, retrying", "err", errorText(err))
		if core.Sleep(ctx, time.Second) != nil {
			return false
		}
	}
}

// sweepOnce takes over runs without an owner and claims for waiting sessions, as far as slots
// are free. It returns how many of each it found.
func (s *Runner) sweepOnce(ctx context.Context) (lapsed, queued int) {
	if !s.hasFreeSlot() {
		s.setBacklog(true)
		return 0, 0
	}
	s.setBacklog(false) // this sweep may miss work that arrives from now on
	lapsed, err := s.takeOver(ctx)
	switch {
	case err == nil:
		queued = s.claimWaiting(ctx)
	case ctx.Err() == nil:
		s.Logger.WarnContext(ctx, "lapsed runs not taken over", "err", errorText(err))
	}
	return lapsed, queued
}

// takeOver takes over runs without an owner, and returns how many. A run that has to execute
// alone comes last: nothing begins after it.
func (s *Runner) takeOver(ctx context.Context) (n int, err error) {
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	due, err := s.Store.Due(call, s.Worker, s.canTakeLapsed())
	s.recordContact(err)
	if err != nil {
		return 0, err
	}
	for _, deaths := range slices.Sorted(maps.Keys(due)) {
		if deaths == loneDeaths {
			continue
		}
		taken, err := s.takeOverSome(ctx, deaths, due[deaths])
		n += taken
		if err != nil {
			return n, err
		}
	}
	switch {
	case due[loneDeaths] == 0:
		return n, nil
	case !s.hasFreeSlot(): // or another one executes alone
		s.setBacklog(true)
		return n, nil
	}
	runs, err := s.leaseRuns(ctx, core.TakeOver{Deaths: loneDeaths, Later: true, Limit: 1})
	for _, run := range runs {
		s.launchRun(core.Claimed{Run: run}, true) //nolint:contextcheck // a run does not depend on the request
	}
	return n + len(runs), err
}

// takeOverSome takes over up to limit runs with so many deaths, as far as slots are free, and
// returns how many.
func (s *Runner) takeOverSome(ctx context.Context, deaths, limit int) (n int, err error) {
	for n < limit {
		slots := s.reserveSlots(deaths, min(limit-n, sweepLimit))
		if slots == 0 {
			s.setBacklog(true)
			return n, nil
		}
		runs, err := s.leaseRuns(ctx, core.TakeOver{Deaths: deaths, Limit: slots})
		s.freeSlots(deaths, slots-len(runs))
		for _, run := range runs {
			s.launchRun(core.Claimed{Run: run}, false) //nolint:contextcheck // a run does not depend on the request
		}
		n += len(runs)
		if err != nil || len(runs) < slots {
			return n, err
		}
	}
	return n, nil
}

// leaseRuns takes over runs.
func (s *Runner) leaseRuns(ctx context.Context, t core.TakeOver) ([]core.Run, error) {
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	t.Worker, t.Lapsed = s.Worker, s.canTakeLapsed()
	s.mu.Lock()
	t.Lapsed = t.Lapsed && !s.contact.refused
	s.mu.Unlock()
	runs, err := s.Store.TakeOver(call, t)
	s.recordContact(err)
	s.recordLeaseWrite(err)
	if err != nil {
		return nil, err
	}
	s.Observer.Count(core.CountTakeovers, len(runs), core.WorkRun)
	for _, run := range runs {
		s.Logger.WarnContext(ctx, "run taken over", "run_id", run.ID, "session_id", run.SessionID, "attempt", run.Attempt, "deaths", t.Deaths)
	}
	return runs, nil
}

// expireApprovals closes approvals that were not decided in time, which queues their runs. It
// returns how many it closed.
func (s *Runner) expireApprovals(ctx context.Context) (n int) {
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	events, err := s.Store.ExpireApprovals(call, sweepLimit)
	s.recordContact(err)
	if err != nil {
		s.Logger.WarnContext(ctx, "approvals not expired", "err", err)
	}
	s.Journal.feed.Publish(ctx, events)
	for _, e := range events {
		if e.Type == core.EventApprovalDecided {
			n++
		}
	}
	return n
}

// claimWaiting claims for sessions whose queue is stalled, as far as slots are free, and
// returns for how many. Sessions that it read but had no slot for come first the next time.
func (s *Runner) claimWaiting(ctx context.Context) (n int) {
	for {
		fresh := len(s.waiting) == 0
		if fresh {
			call, cancel := context.WithTimeout(ctx, callTime)
			var err error
			s.waiting, err = s.Store.Waiting(call, sweepLimit) // those that have waited longest first
			cancel()
			s.recordContact(err)
			if err != nil {
				s.Logger.WarnContext(ctx, "waiting sessions not read", "err", err)
			}
		}
		page, before := len(s.waiting), n
		for len(s.waiting) > 0 {
			if s.reserveSlots(0, 1) == 0 {
				s.setBacklog(true)
				return n
			}
			id := s.waiting[0]
			s.waiting = s.waiting[1:]
			if s.claimSession(ctx, id) {
				n++
			}
		}
		// Others may have claimed for all sessions that an earlier sweep read, and more may
		// wait since then.
		if fresh && (page < sweepLimit || n == before) {
			return n
		}
	}
}

// unwindTime is how long canceled runs may take to return when the process stops.
const unwindTime = 10 * time.Second

// stopRuns ends the executions and releases the leases: see Run.
func (s *Runner) stopRuns(ctx context.Context) {
	s.handBackRuns(func(x *activeRun) bool { return !x.started })
	if !s.waitAll(s.Limits.Grace) {
		s.handBackRuns(func(*activeRun) bool { return true })
		if !s.waitAll(unwindTime) {
			s.Logger.ErrorContext(ctx, "runs do not stop", "runs", s.Active())
		}
	}
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := s.Store.Release(call, s.Worker); err != nil {
		s.Logger.ErrorContext(ctx, "leases not released", "err", err)
		return
	}
	s.notifyPeers(ctx, core.Wakeup{Free: true})
}

// handBackRuns prevents new executions and cancels the matching ones, whose runs are handed
// back.
func (s *Runner) handBackRuns(match func(*activeRun) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	for _, x := range s.active {
		if match(x) {
			x.halt(errHandedBack)
		}
	}
}

// waitAll waits up to d until all executions have ended, and reports whether they have.
func (s *Runner) waitAll(d time.Duration) bool {
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
