package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// WatchRun yields the events of a run after from.After, up to the one that ends it. It
// reconnects. The first error ends the sequence; a run that ended before from.After yields
// nothing.
func (c *Client) WatchRun(ctx context.Context, id core.RunID, from core.Cursor) iter.Seq2[core.Event, error] {
	s := stream{client: c, isLast: core.EventType.EndsRun}
	s.open = func(ctx context.Context, after int64) (*http.Response, error) {
		return c.openEvents(ctx, ops.WatchRun.Operation, ops.InRun{RunID: id}, after)
	}
	s.isOver = func(ctx context.Context) (bool, error) { return c.hasRunEnded(ctx, id) }
	return s.allEvents(ctx, from.After)
}

// WatchSession yields all events of a session after from.After, or with from.Live new ones
// only, until ctx ends or the loop is left. It reconnects. The first error ends the sequence.
func (c *Client) WatchSession(ctx context.Context, id core.SessionID, from core.Cursor) iter.Seq2[core.Event, error] {
	s := stream{client: c}
	s.open = func(ctx context.Context, after int64) (*http.Response, error) {
		return c.openEvents(ctx, ops.WatchSession.Operation, ops.InSession{SessionID: id}, after)
	}
	if from.Live {
		return s.allEvents(ctx, unknownSeq)
	}
	return s.allEvents(ctx, from.After)
}

// WatchHeads yields the heads of the caller's sessions as they change. Each connection begins with
// a resync: load the sessions, then apply what follows. It reconnects and ends as WatchSession does.
func (c *Client) WatchHeads(ctx context.Context) iter.Seq2[core.Event, error] {
	s := stream{client: c}
	s.open = func(ctx context.Context, _ int64) (*http.Response, error) {
		return c.openEvents(ctx, ops.WatchSessions.Operation, struct{}{}, unknownSeq)
	}
	return s.allEvents(ctx, unknownSeq)
}

// openEvents requests events after the given number.
func (c *Client) openEvents(ctx context.Context, op ops.Operation, in any, after int64) (*http.Response, error) {
	r := NewRequest(op, in)
	r.Header["Accept"] = "text/event-stream"
	if after != unknownSeq {
		r.Header["Last-Event-ID"] = strconv.FormatInt(after, 10)
	}
	return c.Do(ctx, r)
}

// hasRunEnded reports whether the run has ended.
func (c *Client) hasRunEnded(ctx context.Context, id core.RunID) (bool, error) {
	run, err := Call(ctx, c, ops.GetRun, ops.InRun{RunID: id})
	return run.Status.Ended(), err
}
