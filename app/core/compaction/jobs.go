package compaction

import (
	"context"
	"errors"
	"sync"

	"bobbin/app/core"
)

// maxJobs bounds the sessions that wait for background work. Further ones are dropped: their
// next plan asks again.
const maxJobs = 1024

// job is a session that may need a summary.
type job struct {
	scope core.Tenant
	id    core.SessionID
}

// jobs is the work beside prompts.
type jobs struct {
	queue chan core.SessionID // in order of arrival, each session once

	mu        sync.Mutex
	accepting bool                          // jobs are accepted; guarded by mu, as all below
	bySession map[core.SessionID]*queuedJob // queued or running
	calls     sync.WaitGroup                // begun before closed
	closed    bool                          // Run no longer waits for calls begun now

	calling     context.Context // of all calls
	cancelCalls context.CancelCauseFunc
}

// queuedJob is a job and its progress.
type queuedJob struct {
	job
	running bool
	requeue bool // run it once more
}

// addJob queues a job. It does nothing while jobs are not accepted.
func (j *jobs) addJob(n job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	q := j.bySession[n.id]
	switch {
	case !j.accepting, q == nil && len(j.bySession) >= maxJobs:
	case q == nil:
		j.bySession[n.id] = &queuedJob{job: n}
		j.queue <- n.id // has room for all of bySession
	default:
		q.requeue = q.running
	}
}

// beginJob marks a job that was taken from the queue as running; false if it was dropped.
func (j *jobs) beginJob(id core.SessionID) (job, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	q := j.bySession[id]
	if q == nil || !j.accepting {
		return job{}, false
	}
	q.running, q.requeue = true, false
	return q.job, true
}

// finishJob ends a job that was begun; with more it is queued again, behind the others.
func (j *jobs) finishJob(id core.SessionID, more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	q := j.bySession[id]
	if (more || q.requeue) && j.accepting {
		q.running = false
		j.queue <- id
		return
	}
	delete(j.bySession, id)
}

// hasSession reports whether the session is queued or running.
func (j *jobs) hasSession(id core.SessionID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bySession[id] != nil
}

// acceptJobs starts or stops accepting jobs. Those that wait when it stops are dropped.
func (j *jobs) acceptJobs(accept bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.accepting, j.closed = accept, !accept
	for id, q := range j.bySession {
		if !q.running {
			delete(j.bySession, id)
		}
	}
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
	done := context.AfterFunc(j.calling, func() { cancel(context.Cause(j.calling)) })
	do := func() {
		defer close(c.done)
		defer cancel(nil)
		defer done()
		c.err = work(ctx)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		go do()
	} else {
		j.calls.Go(do)
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
