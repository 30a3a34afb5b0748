package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Find returns the operation that a request is for, nil if there is none. A path without
// a parameter is meant before one with it, whatever methods it has.
func (d *Document) Find(method, path string) *Operation {
	var best, found *Operation
	for _, op := range d.Operations {
		if op.matches(path) && (best == nil || strings.Count(op.Path, "{") < strings.Count(best.Path, "{")) {
			best = op
		}
	}
	for _, op := range d.Operations {
		if best != nil && op.Path == best.Path && op.Method == method {
			found = op
		}
	}
	return found
}

func (op *Operation) matches(path string) bool {
	given := strings.Split(path, "/")
	if len(given) != len(op.segments) {
		return false
	}
	for i, segment := range op.segments {
		if segment != given[i] && (!strings.HasPrefix(segment, "{") || given[i] == "") {
			return false
		}
	}
	return true
}

// CheckRequest returns what the document has against a request.
func (op *Operation) CheckRequest(r *http.Request, body []byte) error {
	query := r.URL.Query()
	var faults []error
	known := map[string]bool{}
	for _, p := range op.Params {
		if p.In != "query" {
			continue
		}
		known[p.Name] = true
		switch given := query.Get(p.Name); {
		case query.Has(p.Name):
			if err := p.check(given); err != nil {
				faults = append(faults, err)
			}
		case p.Required:
			faults = append(faults, fmt.Errorf("query parameter %s is missing", p.Name))
		}
	}
	for name, given := range query {
		if !known[name] {
			faults = append(faults, fmt.Errorf("query parameter %q is not in the document", name))
		}
		if len(given) > 1 {
			faults = append(faults, fmt.Errorf("query parameter %q is there twice", name))
		}
	}
	return errors.Join(errors.Join(faults...), op.checkBody(r.Header.Get("Content-Type"), body))
}

// check checks the text of a parameter.
func (p Param) check(given string) error {
	var value any = given
	switch p.Schema.Raw["type"] {
	case "integer":
		n, err := strconv.ParseInt(given, 10, 64)
		if err != nil {
			return fmt.Errorf("parameter %s: %q is no integer", p.Name, given)
		}
		value = json.Number(strconv.FormatInt(n, 10))
	case "boolean":
		if given == "true" || given == "false" {
			value = given == "true"
		}
	}
	if err := p.Schema.Check(value); err != nil {
		return fmt.Errorf("parameter %s: %w", p.Name, err)
	}
	return nil
}

// checkBody checks the body of a request. Members that are null count as left out.
func (op *Operation) checkBody(header string, body []byte) error {
	if len(body) == 0 {
		if op.Needed {
			return errors.New("the body is missing")
		}
		return nil
	}
	if op.Body == nil {
		return nil // what nobody reads is not looked at
	}
	media, _, err := mime.ParseMediaType(header)
	if err != nil {
		return fmt.Errorf("content type %q: %w", header, err)
	}
	schema, ok := op.Body[media]
	switch {
	case !ok:
		return fmt.Errorf("content type %q is not in the document", media)
	case media != "application/json":
		return nil
	}
	value, err := Decode(body)
	if err != nil {
		return fmt.Errorf("body: %w", err)
	}
	if o, ok := value.(map[string]any); ok {
		for name, member := range o {
			if member == nil {
				delete(o, name)
			}
		}
	}
	if err := schema.Check(value); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	return nil
}

// CheckAnswer returns what the document has against an answer. The body of a stream
// is checked by CheckEvent and is not looked at.
func (op *Operation) CheckAnswer(status int, header http.Header, body []byte) error {
	answer, ok := op.Answers[status]
	if !ok {
		return fmt.Errorf("status %d is not in the document", status)
	}
	var faults []error
	for name, schema := range answer.Headers {
		if given := header.Get(name); given != "" {
			if err := schema.Check(given); err != nil {
				faults = append(faults, fmt.Errorf("header %s: %w", name, err))
			}
		}
	}
	if header.Get("X-Request-Id") == "" {
		faults = append(faults, errors.New("header X-Request-Id is missing"))
	}
	return errors.Join(append(faults, op.checkContent(answer, header, body))...)
}

func (op *Operation) checkContent(answer Answer, header http.Header, body []byte) error {
	given := header.Get("Content-Type")
	if op.Method == http.MethodHead || len(answer.Body) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("a body where there should be none: %.200s", body)
		}
		return nil
	}
	media, _, err := mime.ParseMediaType(given)
	if err != nil {
		return fmt.Errorf("content type %q: %w", given, err)
	}
	schema, ok := answer.Body[media]
	if !ok {
		if _, ok = answer.Body["*/*"]; ok {
			return nil
		}
		return fmt.Errorf("content type %q is not in the document", given)
	}
	if media != "application/json" && media != "application/problem+json" {
		return nil
	}
	return schema.checkJSON(body)
}

func (s Schema) checkJSON(body []byte) error {
	value, err := Decode(body)
	if err != nil {
		return fmt.Errorf("body: %w: %.200s", err, body)
	}
	if err := s.Check(value); err != nil {
		return fmt.Errorf("body: %w\n%.400s", err, body)
	}
	return nil
}

// CheckEvent returns what the document has against an event of a stream.
func (a Answer) CheckEvent(name string, data []byte) error {
	schema, ok := a.Events[name]
	if !ok {
		return fmt.Errorf("event %q is not in the document", name)
	}
	if err := schema.checkJSON(data); err != nil {
		return fmt.Errorf("event %s: %w", name, err)
	}
	return nil
}

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
