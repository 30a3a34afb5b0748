// Package client is a client of Bobbin's native HTTP API.
//
// Error responses are *ProblemError, which errors.Is matches with the kinds of package core.
// Streams reconnect by themselves: when the connection breaks or falls silent, they resume
// after the last event, and yield every event and every piece of text once.
//
// A Client is safe for concurrent use. It starts no goroutines of its own.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// maxAnswer is the maximum size of a response that is read into memory, in bytes.
const maxAnswer = 256 << 20

// Options configure a Client.
type Options struct {
	URL string // of the server, such as http://127.0.0.1:8080
	Key string // API key, or the server's local token; empty = none
	// HTTP sends the requests; nil = a new client. It must not have a Timeout, which would
	// end streams: use contexts.
	HTTP      *http.Client
	UserAgent string // empty = bobbin-client
	// OnConnectionLost is called when a stream fails to reconnect, once until it receives data again, in
	// the goroutine that reads the stream; nil = not called.
	OnConnectionLost func()
}

// Client sends requests to one server.
type Client struct {
	Options
	base *url.URL
}

// New returns a client. It fails if the URL is not an HTTP URL.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.URL)
	if err != nil {
		return nil, fmt.Errorf("server url: %w", err)
	}
	if (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fmt.Errorf("server url %q: must be http://host:port", o.URL)
	}
	base.Path = strings.TrimRight(base.Path, "/")
	o.HTTP, o.UserAgent = cmp.Or(o.HTTP, &http.Client{}), cmp.Or(o.UserAgent, "bobbin-client")
	if o.OnConnectionLost == nil {
		o.OnConnectionLost = func() {}
	}
	return &Client{Options: o, base: base}, nil
}

// Do sends the request and returns the successful response, whose body the caller closes. Other
// responses are returned as a *ProblemError.
func (c *Client) Do(ctx context.Context, r Request) (*http.Response, error) {
	var body io.Reader
	switch given := r.Body.(type) {
	case nil:
	case io.Reader:
		body = given
	default:
		data, err := json.Marshal(given)
		if err != nil {
			return nil, fmt.Errorf("%s %s: encode body: %w", r.Method, r.Path, err)
		}
		body = bytes.NewReader(data)
	}
	address := c.base.String() + r.Path
	if len(r.Query) > 0 {
		address += "?" + r.Query.Encode()
	}
	out, err := http.NewRequestWithContext(ctx, r.Method, address, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.Path, err)
	}
	out.Header.Set("Accept", "application/json")
	out.Header.Set("User-Agent", c.UserAgent)
	if r.Body != nil {
		out.Header.Set("Content-Type", "application/json")
	}
	if c.Key != "" {
		out.Header.Set("Authorization", "Bearer "+c.Key)
	}
	for name, value := range r.Header {
		out.Header.Set(name, value)
	}
	response, err := c.HTTP.Do(out)
	if err != nil {
		return nil, err // contains method and URL
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		defer response.Body.Close()
		// If it is not a problem document, such as a proxy's page, only its status is kept.
		problem := &ProblemError{}
		data, err := io.ReadAll(io.LimitReader(response.Body, maxProblem))
		if err != nil || json.Unmarshal(data, problem) != nil {
			problem = &ProblemError{}
		}
		problem.Status = response.StatusCode
		if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
			problem.RetryAfter = time.Duration(seconds) * time.Second
		}
		return nil, problem
	}
	return response, nil
}

// Request is a request of the API.
type Request struct {
	Method, Path string // the path is below the server's URL, and escaped
	Query        url.Values
	Header       map[string]string
	Body         any // encoded as JSON, or sent unchanged if it is an io.Reader; nil = none
}

// Caller calls operations; a *Client does.
type Caller interface {
	// CallOperation calls the operation with the values of in, and decodes the answer into what out
	// points to.
	CallOperation(ctx context.Context, op ops.Operation, in, out any) error
}

// Call calls an operation. Zero values of in are left out; an empty list is not a zero value.
func Call[In, Out any](ctx context.Context, c Caller, op ops.Op[In, Out], in In) (out Out, err error) {
	err = c.CallOperation(ctx, op.Operation, in, &out)
	return out, err
}

// CallOperation is for Call.
func (c *Client) CallOperation(ctx context.Context, op ops.Operation, in, out any) error {
	return c.callJSON(ctx, NewRequest(op, in), out)
}

// callJSON sends the request and decodes the answer into what out points to.
func (c *Client) callJSON(ctx context.Context, r Request, out any) error {
	response, err := c.Do(ctx, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("read response: %w", err)
	case len(data) > maxAnswer:
		return errors.New("the response is too large")
	case len(data) == 0:
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%s %s: unexpected response: %w", r.Method, r.Path, err)
	}
	return nil
}

// NewRequest returns the request of an operation with the values of in.
func NewRequest(op ops.Operation, in any) Request {
	r := Request{Method: op.Method(), Path: op.Path(), Query: url.Values{}, Header: map[string]string{}}
	body := map[string]any{}
	values := reflect.ValueOf(in)
	for _, f := range ops.Fields(values.Type()) {
		value := values.FieldByIndex(f.Index)
		switch {
		case f.Place == ops.InPath:
			r.Path = strings.Replace(r.Path, "{"+f.Name+"}", url.PathEscape(fmt.Sprint(value.Interface())), 1)
		case value.IsZero():
		case f.Place == ops.InQuery:
			switch v := reflect.Indirect(value).Interface().(type) {
			case time.Time:
				r.Query.Set(f.Name, v.UTC().Format(time.RFC3339Nano))
			case json.RawMessage:
				r.Query.Set(f.Name, string(v))
			default:
				r.Query.Set(f.Name, cmp.Or(f.Tag.Get("word"), fmt.Sprint(v)))
			}
		default:
			body[f.Name] = value.Interface()
		}
	}
	if len(body) > 0 {
		r.Body = body
	}
	return r
}

// StartRun calls an operation that starts a run, such as ops.SendMessage, and yields the run's events, up to
// the one that ends it. It reconnects; the message is accepted once and every event is yielded once. It
// generates a client_message_id if there is none. Leaving the loop does not stop the run: ops.CancelRun
// does. The first error ends the sequence.
func (c *Client) StartRun(ctx context.Context, op ops.Operation, in any) iter.Seq2[core.Event, error] {
	r, body := NewRequest(op, in), map[string]any{"client_message_id": core.NewID[string]()}
	if given, ok := r.Body.(map[string]any); ok {
		maps.Copy(body, given)
	}
	r.Body = body
	return c.runStream("", r).allEvents(ctx, 0)
}

// UploadBlob uploads an image or a file; messages refer to it by core.Blob.Part.
func (c *Client) UploadBlob(ctx context.Context, u core.Upload) (core.Blob, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, value := range map[string]string{"session_id": string(u.SessionID), "user_id": u.User} {
		if value != "" {
			_ = form.WriteField(name, value) // a buffer cannot fail
		}
	}
	file, _ := form.CreateFormFile("file", u.Name)
	_, _ = file.Write(u.Data)
	_ = form.Close()
	r := NewRequest(ops.UploadFile.Operation, struct{}{})
	r.Body, r.Header["Content-Type"] = &body, form.FormDataContentType()
	var blob core.Blob
	err := c.callJSON(ctx, r, &blob)
	return blob, err
}

// ImportMessages appends a history to a session, all of it or nothing. If the server restarts
// meanwhile, the request is repeated if its body can be read again, such as a bytes.Reader.
func (c *Client) ImportMessages(ctx context.Context, in core.ImportMessages) (core.Imported, error) {
	r := NewRequest(ops.ImportMessages.Operation, ops.Import{InSession: ops.InSession{SessionID: in.SessionID}, Source: in.Source})
	r.Body = in.Body
	if in.Format == core.ImportLines {
		r.Header["Content-Type"] = "application/jsonl"
	}
	var done core.Imported
	err := c.callJSON(ctx, r, &done)
	return done, err
}

// Download calls an operation that answers with a file, and streams it to w. After an error the
// written data is incomplete.
func Download[In any](ctx context.Context, c *Client, op ops.Op[In, ops.Nothing], in In, w io.Writer) error {
	r := NewRequest(op.Operation, in)
	r.Header["Accept"] = "*/*"
	response, err := c.Do(ctx, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("download: the server answered with status %d", response.StatusCode)
	}
	if _, err := io.Copy(w, response.Body); err != nil {
		return fmt.Errorf("download: %w", err)
	}
	return nil
}

// maxProblem is the maximum size of an error response, in bytes.
const maxProblem = 1 << 20

// ProblemError is an error response (RFC 9457). errors.Is matches it with its kind:
// core.ErrNotFound, core.ErrConflict …
type ProblemError struct {
	ops.Problem
	// RetryAfter is the pause before a retry that the server asks for; 0 = none.
	RetryAfter time.Duration `json:"-"`
}

// Error returns the server's explanation.
func (e *ProblemError) Error() string {
	switch {
	case e.Detail == "" && e.Title == "":
		return fmt.Sprintf("the server answered with status %d", e.Status)
	case e.Status == http.StatusInternalServerError && e.RequestID != "":
		return fmt.Sprintf("%s (request id %s)", e.Detail, e.RequestID)
	case e.Detail == "":
		return e.Title
	default:
		return e.Detail
	}
}

// Unwrap returns the error's kind, nil if it has none.
func (e *ProblemError) Unwrap() (kind error) {
	if e.Status == http.StatusBadRequest {
		return core.ErrInvalid
	}
	for _, k := range ops.ErrorKinds() {
		switch {
		case k.Code == e.Code:
			return k.Kind
		case k.Status == e.Status && kind == nil:
			kind = k.Kind
		}
	}
	return kind
}

// isTemporary reports whether the same request may succeed soon.
func (e *ProblemError) isTemporary() bool {
	return slices.Contains([]int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, e.Status)
}
