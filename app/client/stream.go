package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"mime"
	"net/http"
	"path"
	"strconv"
	"syscall"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// Pauses between two connections, and the patience of a stream.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 3 * time.Second
	giveUp     = time.Minute      // a stream without any event for this long fails
	maxSilence = 45 * time.Second // a connection without any data for this long is dropped: three keep-alives
)

var (
	errStreamOver = errors.New("the stream is over")                    // complete, or the reader left
	errEndedEarly = errors.New("the server ended the stream too early") // regularly, but events are missing
	errSilent     = errors.New("the connection fell silent")
)

// unknownSeq means that the number of the last event is not known yet.
const unknownSeq = -1

// stream is a sequence of events over any number of connections. The goroutine of its reader
// owns it.
type stream struct {
	client *Client
	// open connects after the event with that number; unknownSeq = where the server starts by
	// default.
	open func(ctx context.Context, after int64) (*http.Response, error)
	// isLast reports whether the event is the last one; nil = none is.
	isLast func(core.EventType) bool
	// isOver reports whether the stream is complete after a connection without events.
	isOver   func(ctx context.Context) (bool, error)
	progress *progress
	yield    func(core.Event, error) bool

	connected bool // at least one connection succeeded, or may have
}

// finalError is an error that a new connection would not fix.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// allEvents returns the stream's events; each range over it starts again.
func (s stream) allEvents(ctx context.Context, after int64) iter.Seq2[core.Event, error] {
	return func(yield func(core.Event, error) bool) {
		run := s
		run.progress, run.yield = &progress{after: after, texts: map[textKey]int{}}, yield
		if err := run.followEvents(ctx); err != nil {
			yield(core.Event{}, err)
		}
	}
}

// followEvents connects until the stream is over (nil), ctx ends, or no event has arrived for
// the client's time limit.
func (s *stream) followEvents(ctx context.Context) error {
	alive, pause, lost := time.Now(), firstPause, false
	for {
		brought, err := s.readConnection(ctx)
		var final finalError
		switch {
		case errors.Is(err, errStreamOver):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &final):
			return final.error
		}
		switch {
		case brought:
			alive, pause, lost = time.Now(), firstPause, false
		case !lost:
			lost = true
			s.client.OnConnectionLost()
		}
		if time.Since(alive) >= giveUp {
			return err
		}
		wait := pause/2 + rand.N(pause/2+1)
		if problem, ok := errors.AsType[*ProblemError](err); ok {
			wait = max(wait, problem.RetryAfter)
		}
		if err := core.Sleep(ctx, wait); err != nil {
			return err
		}
		pause = min(2*pause, maxPause)
	}
}

// readConnection yields the events of one connection until it ends, and reports whether it
// received anything. The error is never nil.
func (s *stream) readConnection(ctx context.Context) (brought bool, err error) {
	attempt, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(maxSilence, func() { cancel(errSilent) })
	defer watchdog.Stop()

	response, err := s.open(attempt, s.progress.after)
	if err != nil {
		return false, s.openError(attempt, err)
	}
	defer response.Body.Close()
	if media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || media != "text/event-stream" {
		return false, finalError{fmt.Errorf("the server answered with %q instead of events", response.Header.Get("Content-Type"))}
	}
	s.connected = true
	if n, err := strconv.ParseInt(response.Header.Get("Last-Event-ID"), 10, 64); err == nil && s.progress.after == unknownSeq {
		s.progress.after = n
	}
	brought, err = s.readFrames(&watchedReader{response.Body, watchdog})
	if cause := context.Cause(attempt); cause != nil && !errors.Is(err, errStreamOver) {
		err = cause
	}
	if errors.Is(err, errEndedEarly) && !brought && s.isOver != nil {
		over, isOverErr := s.isOver(ctx)
		switch {
		case isOverErr != nil:
			err = s.openError(ctx, isOverErr)
		case over:
			err = errStreamOver
		}
	}
	return brought, err
}

// openError decides whether to retry a connection that failed. The first one is not retried,
// as there may be no server; but if it broke after data was sent, the server may be
// processing the request.
func (s *stream) openError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if problem, ok := errors.AsType[*ProblemError](err); ok {
		if !s.connected || !problem.isTemporary() {
			return finalError{err}
		}
		return err
	}
	broken := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errSilent) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	if !s.connected && !broken {
		return finalError{err}
	}
	s.connected = true
	return err
}

// readFrames yields the new parts of events until the connection ends. It returns errStreamOver after the
// last event.
func (s *stream) readFrames(r io.Reader) (brought bool, err error) {
	frames := newFrames(r)
	for first := true; frames.Scan(); first = false {
		f := parseFrame(frames.Bytes())
		if f.data == nil {
			brought = brought || !first // the first one only confirms the connection
			continue
		}
		e, err := decodeEvent(f)
		if problem, ok := errors.AsType[*ProblemError](err); ok && problem.isTemporary() {
			return brought, err
		} else if err != nil {
			return brought, finalError{err}
		}
		if e, fresh := s.progress.acceptEvent(e); fresh && (!s.yield(e, nil) || s.isLast != nil && s.isLast(e.Type)) {
			return brought, errStreamOver
		}
		brought = true
	}
	switch err := frames.Err(); {
	case err == nil:
		return brought, errEndedEarly
	case errors.Is(err, bufio.ErrTooLong):
		return brought, finalError{errors.New("an event of the stream is too large")}
	default:
		return brought, err
	}
}

// watchedReader resets the watchdog whenever data arrives.
type watchedReader struct {
	io.Reader
	watchdog *time.Timer
}

func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.watchdog.Reset(maxSilence)
	}
	return n, err
}

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

func (c *Client) openEvents(ctx context.Context, op ops.Operation, in any, after int64) (*http.Response, error) {
	r := NewRequest(op, in)
	r.Header["Accept"] = "text/event-stream"
	if after != unknownSeq {
		r.Header["Last-Event-ID"] = strconv.FormatInt(after, 10)
	}
	return c.Do(ctx, r)
}
