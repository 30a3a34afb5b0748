package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"bobbin/app/core"
)

// Pauses between two connections.
const (
	firstPause = 100 * time.Millisecond
	mostPause  = 3 * time.Second
)

var (
	errOver   = errors.New("the stream is over")                   // said all, or the reader left
	errEnded  = errors.New("the server ended the stream too soon") // in order, but there is more to come
	errSilent = errors.New("the connection fell silent")
)

// unknown stands for the number of the last event where none was told yet.
const unknown = -1

// stream is one sequence of events over as many connections as it takes; its
// reader's goroutine owns it.
type stream struct {
	client *Client
	// open begins a connection after the event of that number; unknown = as the
	// server begins by itself.
	open func(ctx context.Context, after int64) (*http.Response, error)
	// last reports whether the event is the last one.
	last func(core.Event) bool
	// over reports whether a connection that ended without an event means the end.
	over     func(ctx context.Context) (bool, error)
	progress *progress
	yield    func(core.Event, error) bool

	connected bool // there was a connection
}

// finalError is an error that another connection would not mend.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// all returns the stream's events; each range over it begins anew.
func (s stream) all(ctx context.Context, after int64) iter.Seq2[core.Event, error] {
	return func(yield func(core.Event, error) bool) {
		run := s
		run.progress, run.yield = newProgress(after), yield
		if err := run.follow(ctx); err != nil {
			yield(core.Event{}, err)
		}
	}
}

// follow connects until the stream is over (nil), ctx ends, or nothing came for
// as long as the client waits.
func (s *stream) follow(ctx context.Context) error {
	alive, pause := time.Now(), firstPause
	for {
		brought, err := s.connection(ctx)
		var final finalError
		switch {
		case errors.Is(err, errOver):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &final):
			return final.error
		}
		if brought {
			alive, pause = time.Now(), firstPause
		}
		if time.Since(alive) >= s.client.giveUp {
			return err
		}
		if err := sleep(ctx, max(pause/2+rand.N(pause/2+1), retryAfter(err))); err != nil {
			return err
		}
		pause = min(2*pause, mostPause)
	}
}

// retryAfter returns the pause that the server asks for, 0 for none.
func retryAfter(err error) time.Duration {
	var problem *ProblemError
	if errors.As(err, &problem) {
		return problem.RetryAfter
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// connection gives on the events of one connection until it ends, and reports
// whether it brought anything. The error is never nil.
func (s *stream) connection(ctx context.Context) (brought bool, err error) {
	attempt, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(s.client.silence, func() { cancel(errSilent) })
	defer watchdog.Stop()

	response, err := s.open(attempt, s.progress.after)
	if err != nil {
		return false, s.openError(attempt, err)
	}
	defer response.Body.Close()
	if media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || media != "text/event-stream" {
		return false, finalError{fmt.Errorf("the server answered with %q in place of events", response.Header.Get("Content-Type"))}
	}
	s.connected = true
	if n, err := strconv.ParseInt(response.Header.Get("Last-Event-ID"), 10, 64); err == nil && s.progress.after == unknown {
		s.progress.after = n
	}
	brought, err = s.read(&watched{response.Body, watchdog, s.client.silence})
	if cause := context.Cause(attempt); cause != nil && !errors.Is(err, errOver) {
		err = cause
	}
	if errors.Is(err, errEnded) && !brought && s.over != nil {
		return false, s.ask(ctx)
	}
	return brought, err
}

// openError says whether a connection that could not be made is worth another
// try. The first one is not: nobody may be there. But if it broke when something
// had been sent, the server may be at it.
func (s *stream) openError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	var problem *ProblemError
	if errors.As(err, &problem) {
		if !s.connected || !problem.temporary() {
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

// ask finds out whether the server had nothing more to say.
func (s *stream) ask(ctx context.Context) error {
	over, err := s.over(ctx)
	switch {
	case err != nil:
		return s.openError(ctx, err)
	case over:
		return errOver
	default:
		return errEnded
	}
}

// read gives on events until the connection ends.
func (s *stream) read(r io.Reader) (brought bool, err error) {
	frames := newFrameReader(r, maxFrame)
	for first := true; ; first = false {
		f, err := frames.next()
		switch {
		case errors.Is(err, io.EOF):
			return brought, errEnded
		case errors.Is(err, errFrameTooLarge):
			return brought, finalError{err}
		case err != nil:
			return brought, err
		case f.comment:
			brought = brought || !first // the first one only says that it is connected
			continue
		}
		if err := s.give(f); err != nil {
			return brought, err
		}
		brought = true
	}
}

// give passes on what is new of an event. It returns errOver after the last one.
func (s *stream) give(f frame) error {
	e, err := decode(f)
	var problem *ProblemError
	if errors.As(err, &problem) && problem.temporary() {
		return err
	}
	if err != nil {
		return finalError{err}
	}
	e, fresh, err := s.progress.take(e)
	switch {
	case err != nil:
		return finalError{err}
	case fresh && (!s.yield(e, nil) || s.last(e)):
		return errOver
	default:
		return nil
	}
}

// watched is a reader that puts the watchdog off whenever something comes.
type watched struct {
	io.Reader
	watchdog *time.Timer
	silence  time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.watchdog.Reset(w.silence)
	}
	return n, err
}
