package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
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
