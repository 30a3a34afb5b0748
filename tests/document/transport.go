package document

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Transport is an http.RoundTripper that holds every request and every answer
// against the document. What is wrong is an error of the test. A request is held
// against it only if it was answered well: tests send wrong ones on purpose.
type Transport struct {
	document *Document
	next     http.RoundTripper
	report   func(format string, args ...any)
}

// NewTransport returns a Transport that sends by next.
func NewTransport(t testing.TB, d *Document, next http.RoundTripper) *Transport {
	var mu sync.Mutex
	over := false
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
	})
	return &Transport{document: d, next: next, report: func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if !over { // a stream may outlive its test
			t.Errorf(format, args...)
		}
	}}
}

// RoundTrip is part of http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := keep(r)
	if err != nil {
		return nil, err
	}
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	op := t.document.Find(r.Method, r.URL.EscapedPath())
	if op == nil {
		internal := strings.HasPrefix(r.URL.Path, "/internal/") // for the command line alone
		if answer.StatusCode < 300 && !internal {
			t.report("%s %s: is not in the document", r.Method, r.URL.Path)
		}
		return answer, nil
	}
	name := fmt.Sprintf("%s %s", r.Method, r.URL.RequestURI())
	if answer.StatusCode < 300 && answer.Header.Get("Idempotency-Replayed") == "" { // a repetition is not read
		if err := op.CheckRequest(r, sent); err != nil {
			t.report("%s: the request: %v\n%.500s", name, err, sent)
		}
	}
	if media, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); media == "text/event-stream" {
		if err := op.CheckAnswer(answer.StatusCode, answer.Header, nil); err != nil {
			t.report("%s: the answer, %d: %v", name, answer.StatusCode, err)
		}
		answer.Body = &stream{ReadCloser: answer.Body, check: func(event string, data []byte) {
			if err := op.Answers[answer.StatusCode].CheckEvent(event, data); err != nil {
				t.report("%s: %v", name, err)
			}
		}}
		return answer, nil
	}
	body, err := io.ReadAll(answer.Body)
	if closed := answer.Body.Close(); err == nil {
		err = closed
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if err != nil { // it broke off: who asked is told the same
		answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), broken{err}))
		return answer, nil
	}
	if err := op.CheckAnswer(answer.StatusCode, answer.Header, body); err != nil {
		t.report("%s: the answer, %d: %v", name, answer.StatusCode, err)
	}
	return answer, nil
}

// broken is a reader that fails.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// keep returns the request's body and puts it back.
func keep(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if err := r.Body.Close(); err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// stream gives every event that passes to check.
type stream struct {
	io.ReadCloser
	check func(event string, data []byte)
	held  []byte
}

// Read is part of io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.held = append(s.held, p[:n]...)
	for {
		frame, rest, whole := bytes.Cut(s.held, []byte("\n\n"))
		if !whole {
			return n, err
		}
		s.held = rest
		if event, data, ok := Frame(frame); ok {
			s.check(event, data)
		}
	}
}

// Frame returns the name and the data of a frame of server-sent events, false for
// one that is no event.
func Frame(frame []byte) (event string, data []byte, ok bool) {
	for line := range bytes.SplitSeq(frame, []byte("\n")) {
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch string(name) {
		case "event":
			event = string(value)
		case "data":
			data = value
		}
	}
	return event, data, event != "" || data != nil
}
