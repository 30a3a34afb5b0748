package cli

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"

	"bobbin/app/core"
	"bobbin/app/folder"
)

// announced sends requests to the server of a data folder, also when that was
// restarted meanwhile: a new process has another token, and may have another
// address. Safe for concurrent use.
type announced struct {
	dir  string
	next http.RoundTripper

	mu     sync.Mutex
	server folder.Server // guarded by mu
}

// RoundTrip is part of http.RoundTripper. A request that the server did not get
// or did not let in is sent once more if the folder announces another one; one
// that is just being started is waited for.
func (a *announced) RoundTrip(r *http.Request) (*http.Response, error) {
	known := a.known()
	response, err := a.send(r, known)
	if !refused(response, err) {
		return response, err
	}
	fresh, running := folder.Running(a.dir)
	if err != nil && !running {
		fresh, running = awaitServer(r.Context(), a.dir)
	}
	switch {
	case running && fresh != known:
		if response != nil {
			_ = response.Body.Close() // its answer is not needed
		}
		a.mu.Lock()
		a.server = fresh
		a.mu.Unlock()
		return a.send(r, fresh)
	case err != nil && !running:
		return nil, &core.Error{Kind: core.ErrUnavailable, Err: err,
			Message: "the server at " + known.URL + " has stopped; begin it again with: " + programName() + " serve"}
	default:
		return response, err
	}
}

func (a *announced) known() folder.Server {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.server
}

// send sends a copy of the request to the server.
func (a *announced) send(r *http.Request, s folder.Server) (*http.Response, error) {
	to, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host = to.Scheme, to.Host, to.Host
	out.Header.Set("Authorization", "Bearer "+s.Token)
	if r.GetBody != nil {
		if out.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return a.next.RoundTrip(out)
}

// refused reports whether a request certainly did nothing: nobody was there, or
// it was not let in.
func refused(response *http.Response, err error) bool {
	var broken *net.OpError
	if errors.As(err, &broken) {
		return broken.Op == "dial"
	}
	return err == nil && response.StatusCode == http.StatusUnauthorized
}
