package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"bobbin/app/core"
)

func runPath(id core.RunID, rest string) string {
	return "/api/v1/runs/" + url.PathEscape(string(id)) + rest
}

// Run returns one run.
func (c *Client) Run(ctx context.Context, id core.RunID) (core.Run, error) {
	return call[core.Run](ctx, c, get(runPath(id, ""), nil))
}

// Runs returns a page of a session's runs, newest first.
func (c *Client) Runs(ctx context.Context, id core.SessionID, q core.PageQuery) (core.Page[core.Run], error) {
	return call[core.Page[core.Run]](ctx, c, get(sessionPath(id, "/runs"), pageQuery(q)))
}

// CancelRun ends a run and keeps what was said. With wait it returns the ended
// run, unless that takes longer than the server waits.
func (c *Client) CancelRun(ctx context.Context, id core.RunID, wait bool) (core.Run, error) {
	return call[core.Run](ctx, c, post(runPath(id, "/cancel"), map[string]bool{"wait": wait}))
}

// Decide answers the question of a run whether a tool may start. The error is
// core.ErrConflict if it was answered otherwise, or needs no answer any more.
func (c *Client) Decide(ctx context.Context, run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (core.Approval, error) {
	word := "deny"
	if d.Approve {
		word = "approve"
	}
	return call[core.Approval](ctx, c, post(runPath(run, "/approvals/"+url.PathEscape(string(id))), map[string]string{"decision": word, "comment": d.Comment}))
}

// WatchRun yields the events of a run after from.After, to the one that ends it.
// It mends broken connections. The first error ends the sequence; a run that had
// ended before from.After yields nothing.
func (c *Client) WatchRun(ctx context.Context, id core.RunID, from core.From) iter.Seq2[core.Event, error] {
	s := stream{client: c, last: endsRun}
	s.open = func(ctx context.Context, after int64) (*http.Response, error) {
		return c.openEvents(ctx, runPath(id, "/events"), after)
	}
	s.over = func(ctx context.Context) (bool, error) { return c.ended(ctx, id) }
	return s.all(ctx, from.After)
}

// WatchSession yields everything that happens in a session after from.After, or
// with from.Live from now on, until ctx ends or the loop is left. It mends broken
// connections. The first error ends the sequence.
func (c *Client) WatchSession(ctx context.Context, id core.SessionID, from core.From) iter.Seq2[core.Event, error] {
	s := stream{client: c, last: func(core.Event) bool { return false }}
	s.open = func(ctx context.Context, after int64) (*http.Response, error) {
		return c.openEvents(ctx, sessionPath(id, "/events"), after)
	}
	if from.Live {
		return s.all(ctx, unknown)
	}
	return s.all(ctx, from.After)
}

// openEvents begins a connection for events.
func (c *Client) openEvents(ctx context.Context, path string, after int64) (*http.Response, error) {
	r := get(path, nil)
	r.header = map[string]string{"Accept": "text/event-stream"}
	if after != unknown {
		r.header["Last-Event-ID"] = strconv.FormatInt(after, 10)
	}
	return c.send(ctx, r)
}

// ended reports whether the run has ended.
func (c *Client) ended(ctx context.Context, id core.RunID) (bool, error) {
	run, err := c.Run(ctx, id)
	return run.Status.Ended(), err
}

// endsRun reports whether the event is the last one of a run.
func endsRun(e core.Event) bool {
	return e.Type == core.EventRunSucceeded || e.Type == core.EventRunFailed || e.Type == core.EventRunCanceled
}
