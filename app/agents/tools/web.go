package tools

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/netguard"
)

// Web sends the requests of the tools of definitions. Safe for concurrent use.
//
// Only public addresses are connected to, unless the definition names the host (private_hosts). A
// request is sent once: no connection is used twice, and nothing is repeated. A redirect is followed
// for GET and HEAD only, and to the same host only. No proxy is used, as it could not be checked.
type Web struct {
	Env      Environment
	MaxBytes int64 // of an answer
}

// webRequest is a request of a tool.
type webRequest struct {
	method, url string
	headers     map[string]string
	body        []byte // nil = none
}

// webAnswer is what came back.
type webAnswer struct {
	status    int
	mediaType string // without parameters
	body      []byte
}

// send sends the request. Errors are for the model.
func (w Web) send(ctx context.Context, d core.ToolDefinition, r webRequest) (webAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, bytes.NewReader(r.body))
	if err != nil {
		return webAnswer{}, errors.New("the address is not valid")
	}
	if r.body == nil {
		req.Body = http.NoBody
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	req.GetBody = nil // or a redirect could send it again
	req.Header.Set("Accept", "application/json, text/*;q=0.9, */*;q=0.1")
	req.Header.Set("User-Agent", "Bobbin")
	for name, value := range r.headers {
		req.Header.Set(name, value)
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Minute)
	}
	response, err := (&http.Client{
		Transport: &http.Transport{
			DialContext:       GuardedDial(d.PrivateHosts, netguard.Dialer{Until: deadline, Bytes: wireFactor*w.MaxBytes + wireBytes}),
			DisableKeepAlives: true, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxHeader,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		},
		CheckRedirect: CheckRedirect,
	}).Do(req)
	if err != nil {
		host := req.URL.Hostname()
		var refused refusal
		switch {
		case errors.As(err, &refused):
			return webAnswer{}, refused
		case ctx.Err() != nil:
			return webAnswer{}, ctx.Err()
		case errors.Is(err, netguard.ErrNotPublic):
			return webAnswer{}, fmt.Errorf("the address of %s is not public; if it may be reached, the tool's file must name it in private_hosts", core.Clip(host, 100))
		case errors.Is(err, netguard.ErrNoHost):
			return webAnswer{}, fmt.Errorf("the host %s does not exist", core.Clip(host, 100))
		default:
			return webAnswer{}, fmt.Errorf("%s cannot be reached, or does not answer as a web server", core.Clip(host, 100))
		}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, w.MaxBytes+1))
	switch {
	case ctx.Err() != nil:
		return webAnswer{}, ctx.Err()
	case err != nil:
		return webAnswer{}, errors.New("the connection broke while the answer was read; whether the request took effect is not known")
	case int64(len(body)) > w.MaxBytes:
		return webAnswer{}, fmt.Errorf("the answer has more than %s; ask for less", core.ByteSize(w.MaxBytes))
	}
	kind := mediaType(response.Header.Get("Content-Type"))
	if kind == "" && len(body) > 0 {
		kind = mediaType(http.DetectContentType(body))
	}
	return webAnswer{response.StatusCode, kind, body}, nil
}

// GuardedDial returns a dialer that connects to public addresses, and to any address of the hosts.
func GuardedDial(hosts []string, d netguard.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		d := d
		if host, _, err := net.SplitHostPort(address); err == nil && len(hosts) > 0 && isAllowedHost(host, hosts) {
			d.Allow = func(netip.Addr) error { return nil }
		}
		return d.Dial(ctx, network, address)
	}
}

// CheckRedirect lets GET and HEAD be redirected within their host.
func CheckRedirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case first.Method != http.MethodGet && first.Method != http.MethodHead:
		return refusal("the server redirects the request, which is not followed, as it might take effect twice")
	case next.URL.Host != first.URL.Host || next.URL.Scheme != first.URL.Scheme:
		return refusal("the server redirects to another host, which is not followed")
	case len(via) > maxRedirects:
		return refusal(fmt.Sprintf("the server redirects more than %d times", maxRedirects))
	}
	return nil
}
