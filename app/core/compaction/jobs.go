package compaction

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"

	"bobbin/app/core"
)

// Bounds of background work in this process. Further sessions are dropped: their next plan asks again.
const (
	maxJobs = 1024 // sessions that wait or are summarized
	workers = 4    // sessions that are summarized concurrently
)

// jobs is the work beside prompts.
type jobs struct {
	workers *semaphore.Weighted // in order of arrival
	calls   sync.WaitGroup      // work that began while jobs were accepted: Run waits for it

	onStop  func(cancel func()) (done func() bool) // has work canceled that outlives the grace period
	stopAll func()                                 // cancels it

	mu        sync.Mutex
	start     func(core.Tenant, core.SessionID) // of Run; nil = jobs are not accepted; guarded by mu, as all below
	bySession map[core.SessionID]bool           // sessions that wait or are summarized; true = once more
}

// hasSession reports whether the session is queued or running.
func (j *jobs) hasSession(id core.SessionID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, found := j.bySession[id]
	return found
}

// accept accepts jobs and starts each; nil = no more.
func (j *jobs) accept(start func(core.Tenant, core.SessionID)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.start = start
}

// call is work that may outlive the prompt that started it.
type call struct {
	done   chan struct{}
	err    error // of the work, when done is closed
	cancel context.CancelCauseFunc
}

// beginCall runs work with a context of its own, which ends when the process stops.
func (j *jobs) beginCall(ctx context.Context, work func(ctx context.Context) error) *call {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c := &call{done: make(chan struct{}), cancel: cancel}
	done := j.onStop(func() { cancel(core.ErrStopping) })
	do := func() {
		defer close(c.done)
		defer cancel(nil)
		defer done()
		c.err = work(ctx)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.start != nil {
		j.calls.Go(do)
	} else {
		go do()
	}
	return c
}

// wait waits for the work and returns its error. If ctx ends first, it returns the cause:
// with errWaitTooLong the work continues, any other cause cancels it.
func (c *call) wait(ctx context.Context) error {
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, errWaitTooLong) {
		return cause
	}
	c.cancel(cause)
	<-c.done
	return cause
}
