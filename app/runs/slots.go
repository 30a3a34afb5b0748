package runs

import "time"

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
		s.triggerSweep()
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

// triggerSweep has the sweep look for work now.
func (s *Runner) triggerSweep() {
	select {
	case s.sweepRequested <- struct{}{}:
	default: // requested already
	}
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
	return time.Since(last.Value.(time.Time)) >= slowAccept //nolint:forcetypeassert // only beginAccept adds to the list
}
