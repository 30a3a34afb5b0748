package sse

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"sync"
	"time"

	"bobbin/app/core"
)

// ErrGone says that the reader went away, or read too slowly and was cut off.
var ErrGone = errors.New("the reader is gone")

// Options are the times of a stream.
type Options struct {
	Heartbeat    time.Duration // a comment line this often; 0 = 15 s
	WriteTimeout time.Duration // a reader who takes longer for one frame is cut off; 0 = 10 s
	ID           string        // a reader who has had no event yet comes back with it; empty = without any
	Frames       *Frames       // what many readers get is encoded once; nil = for each
	Observer     observer      // is told of the stream; nil = nobody is
}

// observer is told of every stream (telemetry).
type observer interface {
	// Stream is told of a stream that is opened; ended is called once, with one of the
	// outcomes.
	Stream() (ended func(outcome string))
}

// What became of a stream, for the observer.
const (
	outcomeEnded  = "ended"  // the events ended, or the server ended them, with a cause of its own
	outcomeGone   = "gone"   // the reader went away
	outcomeSlow   = "slow"   // the reader did not keep up and was cut off
	outcomeFailed = "failed" // there was an error, which the reader was told
)

// outcome returns what became of a stream that ended with err.
func outcome(ctx context.Context, err error) string {
	var shown *core.Error
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &shown) && shown.Code == core.CodeSlowReader:
		return outcomeSlow
	case errors.Is(err, ErrGone), ctx.Err() != nil && errors.Is(context.Cause(ctx), ctx.Err()):
		return outcomeGone
	case err != nil:
		return outcomeFailed
	default:
		return outcomeEnded
	}
}

// Source returns the events to serve. The sequence ends when ctx does.
type Source func(ctx context.Context) iter.Seq2[core.Event, error]

// retry tells browsers how long to wait before they come back, in milliseconds.
// It goes into the first event's frame: some readers dispatch a frame of its own.
const retry = "retry: 1000\n"

// Serve answers with status 200 and the events of source, until they end (nil),
// the first error among them (returned as it is; the stream is still open for
// Fail), ctx ends (nil), or the reader is gone (ErrGone). It ranges over the events in
// the caller's goroutine, and has no other.
func Serve(ctx context.Context, w http.ResponseWriter, source Source, opts Options) (err error) {
	if opts.Observer != nil {
		ended := opts.Observer.Stream()
		defer func() { ended(outcome(ctx, err)) }()
	}
	s := newStream(w, opts)
	if err := s.open(); err != nil {
		return err
	}
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	s.begin(cancel)
	defer s.close()
	for event, err := range source(reading) {
		if reading.Err() != nil {
			break // what the sequence says about its own end is no news
		}
		if err == nil {
			err = s.event(event)
		}
		if err != nil {
			return err
		}
	}
	return s.failure()
}

// Fail ends a stream that Serve has begun by an error event; problem is its data
// in JSON.
func Fail(w http.ResponseWriter, problem []byte, opts Options) error {
	return newStream(w, opts).write(AppendError(nil, problem))
}

// stream is one connection. Frames are written by its reader's goroutine, and comments
// by that of a timer, so that a silent stream costs no goroutine.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	every   time.Duration
	frames  *Frames
	id      string

	mu     sync.Mutex  // held while something is written
	begun  bool        // the first event is written; guarded by mu
	closed bool        // nothing is written any more; guarded by mu
	failed error       // of a comment; guarded by mu
	beat   *time.Timer // guarded by mu
	cancel func()      // ends the events; guarded by mu
}

func newStream(w http.ResponseWriter, opts Options) *stream {
	return &stream{
		w: w, control: http.NewResponseController(bottom(w)), frames: opts.Frames, id: opts.ID,
		timeout: orDefault(opts.WriteTimeout, 10*time.Second), every: orDefault(opts.Heartbeat, 15*time.Second),
	}
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// bottom returns the server's own writer. A wrapper that has a Flush without an
// error would hide that the reader is gone.
func bottom(w http.ResponseWriter) http.ResponseWriter {
	for {
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = u.Unwrap()
	}
}

// open writes the headers and a comment, so that the reader knows at once that
// it is connected.
func (s *stream) open() error {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
	frame := ": connected\n\n"
	if s.id != "" { // browsers take it from a frame without an event, too
		frame = ": connected\nid: " + s.id + "\n\n"
	}
	return s.write([]byte(frame))
}

// begin has comments written from now on. When one cannot be, cancel is called.
func (s *stream) begin(cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel = cancel
	s.beat = time.AfterFunc(s.every, s.keepAlive)
}

// keepAlive writes a comment after a time of silence.
func (s *stream) keepAlive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.failed != nil {
		return
	}
	if s.failed = s.write([]byte(": keep-alive\n\n")); s.failed != nil {
		s.cancel()
		return
	}
	s.beat.Reset(s.every)
}

// close ends the comments, and leaves the server time to end the answer.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.beat.Stop()
	s.extend()
}

// failure returns why a comment could not be written; nil if all could.
func (s *stream) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// event writes an event.
func (s *stream) event(e core.Event) error {
	frame, err := s.frames.of(e)
	if err != nil {
		return fmt.Errorf("write event %d of session %s: %w", e.Seq, e.SessionID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return s.failed
	}
	if !s.begun {
		s.begun = true
		frame = append([]byte(retry), frame...)
	}
	s.beat.Reset(s.every)
	return s.write(frame)
}

// write writes and flushes within the time limit. The caller holds s.mu once events are
// written.
func (s *stream) write(b []byte) error {
	s.extend()
	if _, err := s.w.Write(b); err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	if err := s.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return nil
}

// extend moves the write deadline. It also comes last, for what the server
// itself writes at the end of the answer. Writers that know no deadlines are
// those of tests.
func (s *stream) extend() {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.timeout))
}
