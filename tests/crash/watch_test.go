package crash_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/process"
	"bobbin/tests/records"
)

// watcher follows a session through everything.
type watcher struct {
	name     string
	session  core.SessionID
	traveler traveler
	slow     bool // it takes its time
	violated func(format string, args ...any)
	refused  func(err error)
	asked    func(a core.Approval) // of each question whether a tool may start

	gaveUp atomic.Int64 // how often the client did not mend its connection

	mu   sync.Mutex
	feed *records.Feed // guarded by mu
}

// seen returns the number of the last event that came.
func (w *watcher) seen() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.feed.Seq
}

// take takes an event.
func (w *watcher) take(ctx context.Context, e core.Event) {
	w.mu.Lock()
	w.feed.Take(e)
	w.mu.Unlock()
	if e.Type == core.EventApprovalRequested {
		w.asked(records.Decoded[core.ApprovalData](e).Approval)
	}
	if w.slow && !w.traveler.road.calm.Load() {
		process.Pause(ctx, randomDelay(200*time.Millisecond))
	}
}

// begin says that a connection begins, and returns the number after which it begins.
func (w *watcher) begin() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.feed.Connected()
	return w.feed.Seq
}

// follow follows with Bobbin's own client, which reconnects by itself.
func (w *watcher) follow(ctx context.Context, c *client.Client) {
	for ctx.Err() == nil {
		for e, err := range c.WatchSession(ctx, w.session, core.Cursor{After: w.begin()}) {
			if err != nil {
				if ctx.Err() == nil {
					w.gaveUp.Add(1)
				}
				w.refused(err)
				break
			}
			w.take(ctx, e)
		}
		process.Pause(ctx, 100*time.Millisecond)
	}
}

// harmless reports whether faults explain what a client was told: a connection that
// broke, or an answer that says to come again.
func harmless(err error) bool {
	var problem *client.ProblemError
	if !errors.As(err, &problem) {
		return true
	}
	switch problem.Status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusGatewayTimeout:
		return true
	default:
		return problem.Code == "request_in_progress" || problem.Code == core.CodeSessionBusy // a frozen replica may hold the session's lock
	}
}
