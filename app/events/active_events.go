package events

import (
	"sync"

	"bobbin/app/core"
)

// Bounds of the memory for the events of active runs.
const (
	maxActiveRuns  = 4096      // beyond that all are forgotten: runs that were lost leave theirs behind
	maxActiveBytes = 256 << 10 // of the events of one run
)

// activeEvents keeps the durable events of sessions whose run started in this process, from its
// start to its end, so that a watcher of the run need not read them from the store. Safe for
// concurrent use.
type activeEvents struct {
	mu   sync.Mutex
	runs map[core.SessionID]*runEvents // guarded by mu
}

// runEvents are the events of a session since its active run started, without a gap.
type runEvents struct {
	run    core.RunID
	events []core.Event
	size   int
}

func newActiveEvents() *activeEvents {
	return &activeEvents{runs: map[core.SessionID]*runEvents{}}
}

// addEvent adds a committed event. Call it before the event is published.
func (a *activeEvents) addEvent(e core.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.runs[e.SessionID]
	switch {
	case e.Type == core.EventRunStarted:
		if len(a.runs) >= maxActiveRuns {
			clear(a.runs)
		}
		a.runs[e.SessionID] = &runEvents{run: e.RunID, events: []core.Event{e}, size: e.Size}
	case r == nil:
	case e.RunID == r.run && (e.Type.EndsRun() || e.Type == core.EventRunWaiting), // it may go on in another process
		e.Seq != r.events[len(r.events)-1].Seq+1, r.size+e.Size > maxActiveBytes:
		delete(a.runs, e.SessionID)
	default:
		r.events = append(r.events, e)
		r.size += e.Size
	}
}

// eventsAfter returns the events of the session after the number; false if some may be missing,
// or the run is not the active one.
func (a *activeEvents) eventsAfter(session core.SessionID, run core.RunID, after int64) ([]core.Event, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.runs[session]
	if r == nil || r.run != run {
		return nil, false
	}
	n := after + 1 - r.events[0].Seq
	if n < 0 || n > int64(len(r.events)) {
		return nil, false
	}
	return r.events[n:len(r.events):len(r.events)], true
}
