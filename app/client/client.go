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
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
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
