package runs

import (
	"context"
	"time"

	"bobbin/app/core"
)

// Begin accepts a run and executes it. If a slot is free, accept gets the name of this process
// and leases the run to it if the run is to start. With an empty name it leaves the run queued,
// and the first process with a free slot claims it. A run whose acceptance or claim was committed
// but whose response got lost begins when its lease has lapsed.
func (s *Runner) Begin(ctx context.Context, accept func(worker string) (core.Accepted, error)) (core.Accepted, error) {
	worker, reserved := "", false
	select {
	case <-s.ready:
		reserved = s.reserveSlots(0, 1) == 1
	default: // what an earlier process left behind is not taken over yet
	}
	if reserved {
		worker = s.Worker
	}
	used := false
	defer func() {
		if reserved && !used {
			s.freeSlots(0, 1)
		}
	}()
	s.mu.Lock()
	waiting := s.accepts.PushBack(time.Now())
	s.mu.Unlock()
	a, err := accept(worker)
	s.mu.Lock()
	s.accepts.Remove(waiting)
	s.mu.Unlock()
	if err != nil {
		return core.Accepted{}, err
	}
	switch {
	case a.Run.Status == core.RunRunning && !a.Repeated:
		used = true
		s.launchRun(core.Claimed{Run: a.Run, Session: a.Session, Message: a.Message, Known: a.Known}, false) //nolint:contextcheck // a run does not depend on the request
	case a.Run.Status == core.RunQueued && !reserved:
		s.offerWork(ctx)
	}
	return a, nil
}

// Next claims the session's oldest queued run, if there is one, and executes it here if a slot
// is free. The sweep repairs failures.
func (s *Runner) Next(ctx context.Context, session core.SessionID) {
	if s.reserveSlots(0, 1) == 0 {
		s.offerWork(ctx)
		return
	}
	s.claimSession(ctx, session)
}

// offerWork lets queued runs begin in whichever process has a free slot.
func (s *Runner) offerWork(ctx context.Context) {
	s.setBacklog(true)
	core.Signal(s.sweepRequested) // a slot of this process may have become free
	s.notifyPeers(ctx, core.Wakeup{Free: true})
}

// claimSession claims the session's oldest queued run in a reserved slot, and reports whether
// one began.
func (s *Runner) claimSession(ctx context.Context, session core.SessionID) bool {
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	c, err := s.Store.Claim(call, session, s.Worker)
	if err != nil {
		s.freeSlots(0, 1)
		if !isPermanent(err) {
			s.Logger.WarnContext(ctx, "next run not claimed", "session_id", session, "err", errorText(err))
		}
		return false
	}
	s.Journal.feed.Publish(ctx, c.Events)
	s.launchRun(c, false) //nolint:contextcheck // a run does not depend on the request
	return true
}

// launchRun executes a run that this process has claimed, in a reserved slot or alone. It
// returns immediately; the run does not depend on the caller's context. When the run has ended,
// the session's next queued run is claimed. An attempt that is already active is not started
// again; a newer one replaces it. While the process stops, the run is handed back instead.
func (s *Runner) launchRun(c core.Claimed, lone bool) {
	begun, stopping := s.startExecution(c, lone)
	if !begun && !lone {
		s.freeSlots(c.Run.Deaths, 1)
	}
	if !stopping {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	if err := s.Store.Release(ctx, s.Worker, c.Run.ID); err != nil { // else others would wait for the end of its lease
		s.Logger.WarnContext(ctx, "run not handed back", "run_id", c.Run.ID, "err", err)
		return
	}
	s.offerWork(ctx)
}

// startExecution starts the execution for launchRun. It reports whether the execution begins;
// if not, stopping says whether that is because the process stops.
func (s *Runner) startExecution(c core.Claimed, lone bool) (begun, stopping bool) {
	run := c.Run
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false, true
	}
	old := s.active[run.ID]
	if old != nil && old.run.Attempt >= run.Attempt {
		return false, false
	}
	// A run is detached from its caller here and nowhere else.
	whole, halt := context.WithCancelCause(context.Background())
	work, cancel := context.WithCancelCause(whole)
	x := &activeRun{run: run, claimed: c, halt: halt, cancel: cancel, done: make(chan struct{})}
	if old != nil {
		old.cancel(errLost)
		x.previousDone = old.done
	}
	if _, early := s.earlyCancels[run.ID]; early || run.CancelRequested {
		cancel(core.ErrCanceled)
		delete(s.earlyCancels, run.ID)
	}
	s.active[run.ID] = x
	if lone {
		x.alone = make(chan struct{})
		s.loneRun = x
		x.beginAlone(s.used)
	}
	s.wait.Go(func() {
		defer func() {
			s.freeSlot(x)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.active[run.ID] == x {
				delete(s.active, run.ID)
			}
			halt(nil)
			close(x.done)
		}()
		s.executeRun(whole, work, x)
	})
	return true, false
}

// How runs are executed whose processes died: see "A run that kills its process" in doc.go.
const (
	suspectDeaths = 2 // such runs share suspectSlots
	loneDeaths    = 3 // such a run executes alone; after one more death it fails
	suspectSlots  = 4
)

// reserveSlots reserves up to n slots for runs with so many deaths, and returns how many it
// got. An execution frees its slot when it ends; freeSlots frees those that are not used.
func (s *Runner) reserveSlots(deaths, n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || s.loneRun != nil {
		return 0
	}
	n = min(n, s.Limits.Concurrent-s.used)
	if deaths == suspectDeaths {
		n = min(n, suspectSlots-s.suspects)
		s.suspects += n
	}
	s.used += n
	return n
}

// freeSlots frees slots that were not used.
func (s *Runner) freeSlots(deaths, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if deaths == suspectDeaths {
		s.suspects -= n
	}
	s.used -= n
	if s.loneRun != nil {
		s.loneRun.beginAlone(s.used)
	}
}

// freeSlot frees the slot of an execution, once, and triggers the sweep if work waits for it.
func (s *Runner) freeSlot(x *activeRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case x.slotFreed:
		return
	case x.alone != nil:
		s.loneRun = nil
	case x.run.Deaths == suspectDeaths:
		s.suspects--
		s.used--
	default:
		s.used--
	}
	x.slotFreed = true
	if s.loneRun != nil {
		s.loneRun.beginAlone(s.used)
	} else if s.backlog {
		core.Signal(s.sweepRequested)
	}
}

// beginAlone lets the execution begin if no slot is used. The caller holds Service.mu.
func (x *activeRun) beginAlone(used int) {
	if used == 0 && !x.isAlone {
		x.isAlone = true
		close(x.alone)
	}
}

// hasFreeSlot reports whether a slot is free.
func (s *Runner) hasFreeSlot() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.stopping && s.loneRun == nil && s.used < s.Limits.Concurrent
}

// setBacklog sets whether work may wait for a slot of this process. If so, the sweep looks for
// it when a slot becomes free.
func (s *Runner) setBacklog(there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backlog = there
}

// A process is overloaded while so many runs have waited so long to be accepted.
const (
	manyAccepts = 32
	slowAccept  = 200 * time.Millisecond
)

// IsOverloaded reports whether messages come faster than this process can accept them, so that one more
// would make all of them later.
func (s *Runner) IsOverloaded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.accepts.Len() < manyAccepts {
		return false
	}
	last := s.accepts.Front()
	for range manyAccepts - 1 {
		last = last.Next()
	}
	return time.Since(last.Value.(time.Time)) >= slowAccept //nolint:forcetypeassert // only Begin adds to the list
}
