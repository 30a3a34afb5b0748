package client

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
)

// Call is a request for any operation of the API.
type Call struct {
	Method, Path string // the path is escaped
	Query        url.Values
	Header       map[string]string
	Body         []byte // nil = none
}

// Do sends the request and returns the successful response, whose body the caller closes. Other
// responses are returned as a *ProblemError.
func (c *Client) Do(ctx context.Context, call Call) (*http.Response, error) {
	r := request{method: call.Method, path: call.Path, query: call.Query, header: call.Header}
	if call.Body != nil {
		r.body = bytes.NewReader(call.Body)
	}
	return c.send(ctx, r)
}
