package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"bobbin/app/api/ops"
)

// RawCall is a request for any operation of the API.
type RawCall struct {
	Method, Path string // the path is escaped
	Query        url.Values
	Header       map[string]string
	Body         []byte // nil = none
}

// Do sends the request and returns the successful response, whose body the caller closes. Other
// responses are returned as a *ProblemError.
func (c *Client) Do(ctx context.Context, call RawCall) (*http.Response, error) {
	r := request{method: call.Method, path: call.Path, query: call.Query, header: call.Header}
	if call.Body != nil {
		r.body = bytes.NewReader(call.Body)
	}
	return c.send(ctx, r)
}

// Call calls an operation. Zero values of in are left out; an empty list is not a zero value.
func Call[In, Out any](ctx context.Context, c *Client, op ops.Op[In, Out], in In) (Out, error) {
	return callJSON[Out](ctx, c, requestOf(op.Operation, in))
}

// requestOf returns the request of an operation with the values of in.
func requestOf(op ops.Operation, in any) request {
	r := request{method: op.Method(), path: op.Path(), query: url.Values{}}
	body := map[string]any{}
	values := reflect.ValueOf(in)
	for _, f := range ops.Fields(values.Type()) {
		value := values.FieldByIndex(f.Index)
		switch {
		case f.Place == ops.InPath:
			r.path = strings.Replace(r.path, "{"+f.Name+"}", url.PathEscape(fmt.Sprint(value.Interface())), 1)
		case value.IsZero():
		case f.Place == ops.InQuery:
			r.query.Set(f.Name, paramText(f, value))
		default:
			body[f.Name] = value.Interface()
		}
	}
	if len(body) > 0 {
		r.body = body
	}
	return r
}

// paramText returns a value of the query.
func paramText(f ops.Field, value reflect.Value) string {
	value = reflect.Indirect(value)
	switch v := value.Interface().(type) {
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case json.RawMessage:
		return string(v)
	default:
		if word := f.Tag.Get("word"); word != "" {
			return word
		}
		return fmt.Sprint(v)
	}
}
