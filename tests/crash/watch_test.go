package crash_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
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

	connections atomic.Int64 // begun, but for those that the client mends by itself
	gaveUp      atomic.Int64 // how often the client did not mend one

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

// begin says that a connection is tried, and returns the number after which it begins.
func (w *watcher) begin() int64 {
	w.connections.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.feed.Connected()
	return w.feed.Seq
}

// byClient follows with Bobbin's own client, which reconnects by itself.
func (w *watcher) byClient(ctx context.Context, c *client.Client) {
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

// byHand follows as a browser does: when the connection breaks it comes back with the
// number of the last event, and sorts nothing out.
func (w *watcher) byHand(ctx context.Context, c *http.Client) {
	for ctx.Err() == nil {
		w.connection(ctx, c)
		process.Pause(ctx, 50*time.Millisecond+randomDelay(time.Second))
	}
}

// silence is after how long without a sign of life a connection is given up: three of
// the server's.
const silence = 45 * time.Second

// connection reads one connection to its end.
func (w *watcher) connection(ctx context.Context, c *http.Client) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dog := time.AfterFunc(silence, cancel)
	defer dog.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/v1/sessions/"+string(w.session)+"/events", nil)
	if err != nil {
		w.violated("%v", err)
		return
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Last-Event-ID", strconv.FormatInt(w.begin(), 10))
	res, err := c.Do(req)
	if err != nil {
		return
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		w.refused(&client.ProblemError{Status: res.StatusCode})
		return
	}
	w.read(ctx, res, dog)
}

// read takes the frames of a connection.
func (w *watcher) read(ctx context.Context, res *http.Response, dog *time.Timer) {
	var e core.Event
	var data []byte
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		dog.Reset(silence)
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			e.Seq, _ = strconv.ParseInt(value, 10, 64)
		case "event":
			e.Type = core.EventType(value)
		case "data":
			data = []byte(value)
			var head struct {
				RunID core.RunID `json:"run_id"`
			}
			_ = json.Unmarshal(data, &head) // an event without a run
			e.RunID = head.RunID
		case "":
			w.frame(ctx, e, data)
			e, data = core.Event{}, nil
		}
	}
}

// frame takes one event, or the error that ends the stream.
func (w *watcher) frame(ctx context.Context, e core.Event, data []byte) {
	switch e.Type {
	case "":
	case "error":
		problem := &client.ProblemError{}
		if err := json.Unmarshal(data, problem); err != nil {
			w.violated("an error that cannot be read: %s", data)
			return
		}
		w.refused(problem)
	default:
		e.Data = core.DecodeEventData(e.Type, data)
		w.take(ctx, e)
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
