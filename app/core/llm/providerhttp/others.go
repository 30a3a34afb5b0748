package providerhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"bobbin/app/core/llm"
)

// ClientForOthers returns an HTTP client for libraries that flatten errors to text or overlook them:
// a refusal is an *llm.Error, and an answer ends after MaxAnswer bytes. Time limits are the library's.
func (p *Peer) ClientForOthers() *http.Client {
	client := *p.Client
	client.Transport = refusingTransport{peer: p, next: p.Client.Transport}
	return &client
}

type refusingTransport struct {
	peer *Peer
	next http.RoundTripper
}

// RoundTrip sends the request.
func (t refusingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, t.peer.Unreached(err)
	}
	body := Decoded(response.Header, response.Body)
	if response.StatusCode < 200 || response.StatusCode > 299 {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(body, maxErrorBody)) // what came is used
		return nil, t.peer.Refusal(response.StatusCode, response.Header, text)
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, MaxAnswer), response.Body}
	return response, nil
}

// Exchange is the HTTP client of a library for one call whose answer is read whole. It keeps why the
// call failed, as libraries flatten that to text.
type Exchange struct {
	Peer *Peer
	Err  *llm.Error // nil = an answer came
}

// Do sends the request and reads the answer.
func (x *Exchange) Do(built *http.Request) (*http.Response, error) {
	out := &http.Response{StatusCode: http.StatusOK, Request: built}
	x.Err = x.Peer.Do(built.Context(), func(ctx context.Context) (*http.Request, error) {
		request := built.Clone(ctx)
		request.Header.Set("User-Agent", "bobbin")
		if x.Peer.Key == "" {
			request.Header.Del("Authorization")
		}
		return request, nil
	}, func(response *http.Response, body io.Reader) error {
		text, err := readWhole(body)
		if err != nil {
			return err
		}
		var reported struct{ Error json.RawMessage }
		switch {
		case bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")):
			return x.Peer.Refusal(0, response.Header, []byte(WebPage))
		case json.Unmarshal(text, &reported) == nil && Present(reported.Error):
			return x.Peer.Refusal(0, response.Header, text)
		}
		out.Body = io.NopCloser(bytes.NewReader(text))
		return nil
	})
	if x.Err != nil {
		return nil, x.Err
	}
	return out, nil
}
