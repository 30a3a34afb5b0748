package sse

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"bobbin/app/core"
)

// ErrGone says that the reader went away, or read too slowly and was cut off.
var ErrGone = errors.New("the reader is gone")

// Options are the times of a stream.
type Options struct {
	Heartbeat    time.Duration   // a comment line this often; 0 = 15 s
	WriteTimeout time.Duration   // a reader who takes longer for one frame is cut off; 0 = 10 s
	Stop         <-chan struct{} // ends the stream when it is closed; nil = never
	Observer     observer        // is told of the stream; nil = nobody is
}

// observer is told of every stream (telemetry).
type observer interface {
	// Stream is told of a stream that is opened; ended is called once, with one of the
	// outcomes.
	Stream() (ended func(outcome string))
}

// What became of a stream, for the observer.
const (
	outcomeEnded  = "ended"  // the events ended, or the server stops
	outcomeGone   = "gone"   // the reader went away
	outcomeSlow   = "slow"   // the reader did not keep up and was cut off
	outcomeFailed = "failed" // there was an error, which the reader was told
)

// outcome returns what became of a stream that ended with err.
func outcome(ctx context.Context, err error) string {
	var shown *core.Error
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &shown) && shown.Code == codeSlow:
		return outcomeSlow
	case errors.Is(err, ErrGone), ctx.Err() != nil:
		return outcomeGone
	case err != nil:
		return outcomeFailed
	default:
		return outcomeEnded
	}
}

// codeSlow is the code of the feed's error for a reader who does not keep up.
const codeSlow = "slow_reader"

// Source returns the events to serve. The sequence ends when ctx does.
type Source func(ctx context.Context) iter.Seq2[core.Event, error]

// retry tells browsers how long to wait before they come back, in milliseconds.
// It goes into the first event's frame: some readers dispatch a frame of its own.
const retry = "retry: 1000\n"

// Serve answers with status 200 and the events of source, until they end (nil),
// the first error among them (returned as it is; the stream is still open for
// Fail), ctx ends or opts.Stop is closed (nil), or the reader is gone (ErrGone).
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
	items := make(chan item)
	go pump(reading, source, items)
	// The pump must not outlive the request, whatever ends the loop.
	defer func() {
		cancel()
		for range items {
			// until the pump has closed it
		}
		s.extend()
	}()
	return s.copy(reading, items, opts)
}

// Fail ends a stream that Serve has begun by an error event; problem is its data
// in JSON.
func Fail(w http.ResponseWriter, problem []byte, opts Options) error {
	return newStream(w, opts).write(AppendError(nil, problem))
}

// item is what the pump hands over: an event, an error, or a panic.
type item struct {
	event core.Event
	err   error
	panic *Panic
}

// Panic is what a source panicked with. Serve panics with it again in its
// caller's goroutine, where the server recovers.
type Panic struct {
	Value any
	Stack []byte
}

// String says what the panic was.
func (p *Panic) String() string { return fmt.Sprint(p.Value) }

// pump ranges over the events until they end or ctx does, then closes items.
func pump(ctx context.Context, source Source, items chan<- item) {
	defer close(items)
	defer func() {
		if v := recover(); v != nil {
			send(ctx, items, item{panic: &Panic{Value: v, Stack: debug.Stack()}})
		}
	}()
	for event, err := range source(ctx) {
		if !send(ctx, items, item{event: event, err: err}) || err != nil {
			return
		}
	}
}

// send reports whether the item was taken before ctx ended.
func send(ctx context.Context, items chan<- item, it item) bool {
	select {
	case items <- it:
		return true
	case <-ctx.Done():
		return false
	}
}

// stream is one connection; Serve's goroutine owns it.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	begun   bool // the first event is written
}

func newStream(w http.ResponseWriter, opts Options) *stream {
	timeout := opts.WriteTimeout
	if timeout <= 0 {
		timeout = 10 * time.Second
	}
	return &stream{w: w, control: http.NewResponseController(bottom(w)), timeout: timeout}
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
	return s.write([]byte(": connected\n\n"))
}

func (s *stream) copy(ctx context.Context, items <-chan item, opts Options) error {
	every := opts.Heartbeat
	if every <= 0 {
		every = 15 * time.Second
	}
	beat := time.NewTicker(every)
	defer beat.Stop()
	for {
		var err error
		select {
		case it, open := <-items:
			if !open {
				return nil
			}
			if ctx.Err() != nil {
				return nil // what the sequence says about its own end is no news
			}
			err = s.item(it)
			beat.Reset(every)
		case <-beat.C:
			err = s.write([]byte(": keep-alive\n\n"))
		case <-ctx.Done():
			return nil
		case <-opts.Stop:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *stream) item(it item) error {
	switch {
	case it.panic != nil:
		panic(it.panic)
	case it.err != nil:
		return it.err
	}
	var buf []byte
	if !s.begun {
		buf = append(buf, retry...)
		s.begun = true
	}
	buf, err := AppendEvent(buf, it.event)
	if err != nil {
		return fmt.Errorf("write event %d of session %s: %w", it.event.Seq, it.event.SessionID, err)
	}
	return s.write(buf)
}

// write writes and flushes within the time limit.
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
