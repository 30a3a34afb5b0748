package handlers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"bobbin/app/core"
)

// ErrGone says that the reader went away, or read too slowly and was cut off.
var ErrGone = errors.New("the reader is gone")

// defaultHeartbeat is the interval of comments without a setting.
const defaultHeartbeat = 15 * time.Second

// StreamOptions configure a stream.
type StreamOptions struct {
	Heartbeat    time.Duration // interval of comment lines; 0 = 15 s
	WriteTimeout time.Duration // a reader who takes longer for one frame is disconnected; 0 = 10 s
	ID           string        // for readers that reconnect before the first event; empty = none
	Encode       Encoder       // of another protocol; nil = the native frames
	Observer     core.Observer // nil = none
}

// Encoder appends the frames of an event to buf, none if its protocol has none for it.
type Encoder func(buf []byte, e core.Event) ([]byte, error)

// EventSource returns the events to serve. The sequence ends when ctx does.
type EventSource func(ctx context.Context) iter.Seq2[core.Event, error]

// retry is the delay in milliseconds after which browsers reconnect. It is part of the first
// event's frame: some readers dispatch a separate frame as an event.
const retry = "retry: 1000\n"

// ServeEvents answers with status 200 and the events of source, until they end (nil), one is an
// error (returned unchanged; the stream is still open for FailStream), ctx ends (nil), or the
// reader is gone (ErrGone). It ranges over the events in the caller's goroutine and starts
// no other.
func ServeEvents(ctx context.Context, w http.ResponseWriter, source EventSource, opts StreamOptions) (err error) {
	ended := core.ObserverOrNone(opts.Observer).Stream()
	defer func() {
		var shown *core.Error
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &shown) && shown.Code == core.CodeSlowReader:
			ended("slow") // and was disconnected
		case errors.Is(err, ErrGone), ctx.Err() != nil && errors.Is(context.Cause(ctx), ctx.Err()):
			ended("gone")
		case err != nil:
			ended("failed") // the reader got an error event
		default:
			ended("ended") // or the server ended the events with its own cause
		}
	}()
	s := newStream(w, opts)
	// The comment tells the reader immediately that it is connected.
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
	frame := ": connected\n\n"
	if s.ID != "" { // browsers take it from a frame without an event, too
		frame = ": connected\nid: " + s.ID + "\n\n"
	}
	if err := s.write([]byte(frame)); err != nil {
		return err
	}
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.cancel, s.beat = cancel, time.AfterFunc(s.Heartbeat, s.keepAlive)
	s.mu.Unlock()
	defer func() { // no more comments, and time for the end of the response
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closed = true
		s.beat.Stop()
		s.extendDeadline()
	}()
	for event, err := range source(reading) {
		if reading.Err() != nil {
			break // an error about the end of ctx is expected
		}
		if err == nil {
			err = s.writeEvent(event)
		}
		if err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commentErr
}

// FailStream ends a stream that ServeEvents has begun with an error; frame is how its protocol
// writes it.
func FailStream(w http.ResponseWriter, frame []byte, opts StreamOptions) error {
	return newStream(w, opts).write(frame)
}

// ErrorFrame returns the native frame of an error; problem is its JSON data.
func ErrorFrame(problem []byte) []byte {
	return append(append(appendName(nil, ErrorEvent), problem...), "\n\n"...)
}

// stream is one connection. The goroutine of ServeEvents writes the frames, a timer the comments.
type stream struct {
	StreamOptions
	w       http.ResponseWriter
	control *http.ResponseController
	buf     []byte // of Encode

	mu         sync.Mutex  // held during writes
	hasEvent   bool        // the first event is written; guarded by mu
	closed     bool        // no more comments; guarded by mu
	commentErr error       // of writing a comment; guarded by mu
	beat       *time.Timer // guarded by mu
	cancel     func()      // ends the events; guarded by mu
}

func newStream(w http.ResponseWriter, opts StreamOptions) *stream {
	opts.WriteTimeout, opts.Heartbeat = cmp.Or(opts.WriteTimeout, 10*time.Second), cmp.Or(opts.Heartbeat, defaultHeartbeat)
	return &stream{StreamOptions: opts, w: w, control: http.NewResponseController(ServerWriter(w))}
}

// ServerWriter returns the server's own writer: the Flush of a wrapper may return no error and hide that the
// reader is gone, and MaxBytesReader closes the connection of no wrapper.
func ServerWriter(w http.ResponseWriter) http.ResponseWriter {
	for {
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = u.Unwrap()
	}
}

func (s *stream) keepAlive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.commentErr != nil {
		return
	}
	if s.commentErr = s.write([]byte(": keep-alive\n\n")); s.commentErr != nil {
		s.cancel()
		return
	}
	s.beat.Reset(s.Heartbeat)
}

func (s *stream) writeEvent(e core.Event) error {
	var frame []byte
	var err error
	if s.Encode != nil {
		s.buf, err = s.Encode(s.buf[:0], e)
		frame = s.buf
	} else { // shared by all readers
		frame, err = e.Frame.Encoded(func() ([]byte, error) { return AppendEvent(nil, e) })
	}
	if err != nil {
		return fmt.Errorf("write event %d of session %s: %w", e.Seq, e.SessionID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.commentErr != nil || len(frame) == 0 {
		return s.commentErr
	}
	if !s.hasEvent && s.Encode == nil {
		s.hasEvent = true
		frame = append([]byte(retry), frame...)
	}
	s.beat.Reset(s.Heartbeat)
	return s.write(frame)
}

// write writes and flushes within the time limit. The caller holds s.mu once events are
// written.
func (s *stream) write(b []byte) error {
	s.extendDeadline()
	if _, err := s.w.Write(b); err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	if err := s.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return nil
}

// extendDeadline extends the write deadline; at the end also for what the server itself
// writes. Only the writers of tests do not support deadlines.
func (s *stream) extendDeadline() {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.WriteTimeout))
}

// ErrorEvent is the name of the event that ends a stream after an error.
const ErrorEvent = "error"

// AppendEvent appends the event's frame to buf. It fails if the event's data are no object.
func AppendEvent(buf []byte, e core.Event) ([]byte, error) {
	if d, ok := e.Data.(core.DeltaData); ok {
		// There is a delta for each word of an answer.
		out := bytes.NewBuffer(appendName(buf, string(e.Type)))
		enc := json.NewEncoder(out) // it ends the line
		enc.SetEscapeHTML(false)
		if err := enc.Encode(core.LeanDelta{MessageID: d.MessageID, OffsetUTF16: d.OffsetUTF16, Text: d.Text, DeltaCall: d.DeltaCall}); err != nil {
			return buf, fmt.Errorf("data of %s: %w", e.Type, err)
		}
		return append(out.Bytes(), '\n'), nil
	}
	at, err := e.At.MarshalJSON()
	body := []byte("{}")
	if err == nil && e.Data != nil {
		if body, err = e.EncodeData(); err == nil && body[0] != '{' {
			err = fmt.Errorf("%.20s is not a JSON object", body)
		}
	}
	if err != nil {
		return buf, fmt.Errorf("data of %s: %w", e.Type, err)
	}
	buf = slices.Grow(buf, len(body)+256) // more than what is around it
	if e.Seq > 0 || e.Type == core.EventResync && e.SessionID != "" {
		buf = append(strconv.AppendInt(append(buf, "id: "...), e.Seq, 10), '\n')
	}
	buf = append(appendName(buf, string(e.Type)), '{')
	if e.SessionID != "" {
		buf = append(append(append(buf, `"session_id":"`...), e.SessionID...), `",`...)
	}
	if e.RunID != "" {
		buf = append(append(append(buf, `"run_id":"`...), e.RunID...), `",`...)
	}
	buf = append(append(buf, `"at":`...), at...)
	if len(body) > len("{}") {
		buf = append(buf, ',')
	}
	return append(append(buf, body[1:]...), "\n\n"...), nil
}

// appendName appends a frame's lines up to the data.
func appendName(buf []byte, name string) []byte {
	buf = append(buf, "event: "...)
	buf = append(buf, name...)
	return append(buf, "\ndata: "...)
}
