package anthropic

import "net/http"

// Cloud is a provider that serves Claude over the Messages API in its own place, with its own
// authorization. Zero = Anthropic itself. Thoughts belong to the provider that made them. System
// messages among the others and compactions are not known to work on any cloud, and are not used.
type Cloud struct {
	Provider string // what it is called
	// Path is where requests go, below the base URL; empty = v1/messages. A path names the model,
	// which is not in the body then.
	Path    string
	Version string // anthropic_version in the body; empty = only the header of Anthropic's own API
	// BindingControls: it knows the beta that leaves thoughts out instead of refusing a request.
	BindingControls bool
	// Authorize adds the authorization to a request whose body is final (GetBody). It is called
	// once for each request, by several goroutines. An *llm.Error ends the call as it is; other
	// errors count as a provider that was not reached.
	Authorize func(*http.Request) error
}

// path returns where requests go.
func (c Cloud) path() string {
	if c.Path != "" {
		return c.Path
	}
	return "v1/messages"
}

// transport returns the transport with the authorization added to each request, which is the last
// that changes it: signatures hold for the bytes that are sent.
func (c Cloud) transport(next http.RoundTripper) http.RoundTripper {
	if c.Authorize == nil {
		return next
	}
	return authorizingTransport{next: next, authorize: c.Authorize}
}

type authorizingTransport struct {
	next      http.RoundTripper
	authorize func(*http.Request) error
}

// RoundTrip sends the request with its authorization.
func (t authorizingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	authorized := r.Clone(r.Context())
	if err := t.authorize(authorized); err != nil {
		r.Body.Close() // as a RoundTripper must
		return nil, err
	}
	return t.next.RoundTrip(authorized)
}
