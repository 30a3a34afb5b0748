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

// jobs is the work beside prompts. Each session is in the queue once.
type jobs struct {
	mu        sync.Mutex
	accepting bool                          // jobs are accepted; guarded by mu, as all below
	queue     []core.SessionID              // in order of arrival
	bySession map[core.SessionID]*queuedJob // queued or running
	wakeups   chan struct{}                 // holds a token while a worker should check the queue

	calls     sync.WaitGroup     // begun before closed
	running   map[*call]struct{} // guarded by mu, as all below
	closed    bool               // Run no longer waits for calls begun now
	stopCause error              // cause that canceled all calls; nil = none
}

// queuedJob is a job and its progress.
type queuedJob struct {
	job
	running bool
	requeue bool // run it once more
}

func newJobs() *jobs {
	return &jobs{bySession: map[core.SessionID]*queuedJob{}, wakeups: make(chan struct{}, 1), running: map[*call]struct{}{}}
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
		j.pushSession(n.id)
	default:
		q.requeue = q.running
	}
}

// pushSession appends a session to the queue. The caller holds mu.
func (j *jobs) pushSession(id core.SessionID) {
	j.queue = append(j.queue, id)
	j.wakeWorker()
}

// takeJob returns the job that has waited longest; false if there is none.
func (j *jobs) takeJob() (job, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.queue) == 0 {
		return job{}, false
	}
	q := j.bySession[j.queue[0]]
	j.queue = j.queue[1:]
	q.running, q.requeue = true, false
	if len(j.queue) > 0 {
		j.wakeWorker()
	}
	return q.job, true
}

// finishJob ends a job that was taken; with more it is queued again, behind the others.
func (j *jobs) finishJob(id core.SessionID, more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	q := j.bySession[id]
	if (more || q.requeue) && j.accepting {
		q.running = false
		j.pushSession(id)
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

// acceptJobs starts accepting jobs.
func (j *jobs) acceptJobs() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.accepting = true
}

// dropJobs stops accepting jobs and drops those that wait.
func (j *jobs) dropJobs() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.accepting, j.closed = false, true
	for _, id := range j.queue {
		delete(j.bySession, id)
	}
	j.queue = nil
}

// wakeWorker makes one worker check the queue. The caller holds mu.
func (j *jobs) wakeWorker() {
	select {
	case j.wakeups <- struct{}{}:
	default:
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
	do := func() {
		defer close(c.done)
		defer j.endCall(c)
		c.err = work(ctx)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stopCause != nil {
		cancel(j.stopCause)
	}
	j.running[c] = struct{}{}
	if j.closed {
		go do()
	} else {
		j.calls.Go(do)
	}
	return c
}

// endCall releases what a call holds.
func (j *jobs) endCall(c *call) {
	c.cancel(nil)
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.running, c)
}

// cancelCalls cancels all calls.
func (j *jobs) cancelCalls(cause error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stopCause = cause
	for c := range j.running {
		c.cancel(cause)
	}
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
