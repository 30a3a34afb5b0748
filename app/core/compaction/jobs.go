package compaction

import (
	"sync"

	"bobbin/app/core"
)

// maxJobs bounds the sessions that wait for work in the background. What does not fit
// is dropped: the session's next plan finds it again.
const maxJobs = 1024

// job is a session in which a summary may be wanted.
type job struct {
	scope core.Scope
	id    core.SessionID
}

// jobs is the work in the background: each session is in it once.
type jobs struct {
	mu    sync.Mutex
	open  bool                   // guarded by mu, as all below
	queue []job                  // in the order in which they came
	state map[core.SessionID]int // of the sessions that are queued or worked on
	more  chan struct{}          // holds a token while somebody should look at the queue
}

// The states of a job.
const (
	jobQueued = iota + 1
	jobAtWork
	jobAgain // at work, and to be done once more
)

func newJobs() *jobs {
	return &jobs{state: map[core.SessionID]int{}, more: make(chan struct{}, 1)}
}

// add takes a job. It does nothing while nobody works.
func (j *jobs) add(n job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch state := j.state[n.id]; {
	case !j.open, state == jobQueued, state == 0 && len(j.state) >= maxJobs:
	case state == 0:
		j.state[n.id] = jobQueued
		j.queue = append(j.queue, n)
		j.wake()
	default:
		j.state[n.id] = jobAgain
	}
}

// take returns the job that waits longest; false if none does.
func (j *jobs) take() (job, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.queue) == 0 {
		return job{}, false
	}
	n := j.queue[0]
	j.queue = j.queue[1:]
	j.state[n.id] = jobAtWork
	if len(j.queue) > 0 {
		j.wake()
	}
	return n, true
}

// done ends a job that was taken.
func (j *jobs) done(n job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.state[n.id] == jobAgain && j.open {
		j.state[n.id] = jobQueued
		j.queue = append(j.queue, n)
		j.wake()
		return
	}
	delete(j.state, n.id)
}

// has reports whether the session is queued or worked on.
func (j *jobs) has(id core.SessionID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state[id] != 0
}

// begin lets jobs come; end drops those that wait, and lets none come.
func (j *jobs) begin() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.open = true
}

func (j *jobs) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.open = false
	for _, n := range j.queue {
		delete(j.state, n.id)
	}
	j.queue = nil
}

// wake lets one worker look. The caller holds mu.
func (j *jobs) wake() {
	select {
	case j.more <- struct{}{}:
	default:
	}
}
