package client

import (
	"context"
	"iter"
	"net/http"
	"path"
	"strconv"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// WatchRun yields the events of a run after from.After, up to the one that ends it. It
// reconnects. The first error ends the sequence; a run that ended before from.After yields
// nothing.
func (c *Client) WatchRun(ctx context.Context, id core.RunID, from core.Cursor) iter.Seq2[core.Event, error] {
	return c.runStream(id, Request{}).allEvents(ctx, from.After)
}

// runStream returns the stream of a run; without an id, of the one that the request begins. The request
// has a client_message_id, so that it can be repeated.
func (c *Client) runStream(id core.RunID, begin Request) stream {
	s := stream{client: c, isLast: core.EventType.EndsRun}
	s.open = func(ctx context.Context, after int64) (*http.Response, error) {
		if id != "" {
			return c.openEvents(ctx, ops.WatchRun.Operation, ops.InRun{RunID: id}, after)
		}
		begin.Header["Accept"] = "text/event-stream"
		response, err := c.Do(ctx, begin)
		if err == nil && response.Header.Get("Location") != "" {
			id = core.RunID(path.Base(response.Header.Get("Location")))
		}
		return response, err
	}
	s.isOver = func(ctx context.Context) (bool, error) {
		if id == "" {
			return false, nil // unknown: the message is sent again
		}
		run, err := Call(ctx, c, ops.GetRun, ops.InRun{RunID: id})
		return run.Status.Ended(), err
	}
	return s
}

// WatchSession yields all events of a session after from.After, or with from.Live new ones
// only, until ctx ends or the loop is left. It reconnects. The first error ends the sequence.
func (c *Client) WatchSession(ctx context.Context, id core.SessionID, from core.Cursor) iter.Seq2[core.Event, error] {
	if from.Live {
		from.After = unknownSeq
	}
	return c.endlessStream(ops.WatchSession.Operation, ops.InSession{SessionID: id}).allEvents(ctx, from.After)
}

// WatchHeads yields the heads of the caller's sessions as they change. Each connection begins with
// a resync: load the sessions, then apply what follows. It reconnects and ends as WatchSession does.
func (c *Client) WatchHeads(ctx context.Context) iter.Seq2[core.Event, error] {
	return c.endlessStream(ops.WatchSessions.Operation, struct{}{}).allEvents(ctx, unknownSeq)
}

func (c *Client) endlessStream(op ops.Operation, in any) stream {
	return stream{client: c, open: func(ctx context.Context, after int64) (*http.Response, error) {
		return c.openEvents(ctx, op, in, after)
	}}
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
