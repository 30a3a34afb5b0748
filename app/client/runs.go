package client

import (
	"context"
	"encoding/json"
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
	return callJSON[core.Run](ctx, c, getRequest(runPath(id, ""), nil))
}

// Runs returns a page of the runs of a session, newest first.
func (c *Client) Runs(ctx context.Context, id core.SessionID, q core.PageQuery) (core.Page[core.Run], error) {
	return callJSON[core.Page[core.Run]](ctx, c, getRequest(sessionPath(id, "/runs"), pageQuery(q)))
}

// CancelRun cancels a run and keeps its partial answer. With wait it returns the ended run,
// unless that takes longer than the server's time limit.
func (c *Client) CancelRun(ctx context.Context, id core.RunID, wait bool) (core.Run, error) {
	return callJSON[core.Run](ctx, c, postRequest(runPath(id, "/cancel"), map[string]bool{"wait": wait}))
}

// Decide approves or denies a tool call, or answers it. The error is core.ErrConflict if it was
// decided differently, or the decision is no longer needed.
func (c *Client) Decide(ctx context.Context, run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (core.Approval, error) {
	body := struct {
		Decision  string          `json:"decision,omitempty"`
		Comment   string          `json:"comment,omitempty"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Respond   string          `json:"respond,omitempty"`
		Result    *string         `json:"result,omitempty"`
		IsError   bool            `json:"is_error,omitempty"`
	}{"", d.Comment, json.RawMessage(d.Arguments), d.Respond, d.Result, d.IsError}
	switch {
	case d.Approve:
		body.Decision = "approve"
	case d.Respond == "" && d.Result == nil:
		body.Decision = "deny"
	}
	return callJSON[core.Approval](ctx, c, postRequest(runPath(run, "/approvals/"+url.PathEscape(string(id))), body))
}

// WatchRun yields the events of a run after from.After, up to the one that ends it. It
// reconnects. The first error ends the sequence; a run that ended before from.After yields
// nothing.
func (c *Client) WatchRun(ctx context.Context, id core.RunID, from core.Cursor) iter.Seq2[core.Event, error] {
	s := stream{client: c, isLast: core.EventType.EndsRun}
	s.open = func(ctx context.Context, after int64) (*http.Response, error) {
		return c.openEvents(ctx, runPath(id, "/events"), after)
	}
	s.isOver = func(ctx context.Context) (bool, error) { return c.hasRunEnded(ctx, id) }
	return s.allEvents(ctx, from.After)
}

// WatchSession yields all events of a session after from.After, or with from.Live new ones
// only, until ctx ends or the loop is left. It reconnects. The first error ends the sequence.
func (c *Client) WatchSession(ctx context.Context, id core.SessionID, from core.Cursor) iter.Seq2[core.Event, error] {
	s := stream{client: c, isLast: func(core.EventType) bool { return false }}
	s.open = func(ctx context.Context, after int64) (*http.Response, error) {
		return c.openEvents(ctx, sessionPath(id, "/events"), after)
	}
	if from.Live {
		return s.allEvents(ctx, unknownSeq)
	}
	return s.allEvents(ctx, from.After)
}

// WatchHeads yields the heads of the caller's sessions as they change. Each connection begins with
// a resync: load the sessions, then apply what follows. It reconnects and ends as WatchSession does.
func (c *Client) WatchHeads(ctx context.Context) iter.Seq2[core.Event, error] {
	s := stream{client: c, isLast: func(core.EventType) bool { return false }}
	s.open = func(ctx context.Context, _ int64) (*http.Response, error) {
		return c.openEvents(ctx, "/api/v1/events", unknownSeq)
	}
	return s.allEvents(ctx, unknownSeq)
}

// openEvents requests events after the given number.
func (c *Client) openEvents(ctx context.Context, path string, after int64) (*http.Response, error) {
	r := getRequest(path, nil)
	r.header = map[string]string{"Accept": "text/event-stream"}
	if after != unknownSeq {
		r.header["Last-Event-ID"] = strconv.FormatInt(after, 10)
	}
	return c.send(ctx, r)
}

// hasRunEnded reports whether the run has ended.
func (c *Client) hasRunEnded(ctx context.Context, id core.RunID) (bool, error) {
	run, err := c.Run(ctx, id)
	return run.Status.Ended(), err
}
