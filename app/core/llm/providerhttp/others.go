package providerhttp

import (
	"io"
	"net/http"
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
