package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"strings"
	"time"

	"bobbin/app/api/ops"
)

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
