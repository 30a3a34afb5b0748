package mcp

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2/clientcredentials"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/netguard"
)

// maxMessage bounds one message of a server, in bytes.
const maxMessage = 16 << 20

// link is a connection to a server.
type link struct {
	session *sdk.ClientSession
	end     func()  // ends what is behind the connection
	said    *output // by the program before it ended; nil = there is no program
}

// close ends the connection. Calls in flight, for which the SDK would wait, are given up after exitTime.
func (l *link) close() {
	closed := make(chan struct{})
	go func() {
		_ = l.session.Close() // it may be gone
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(exitTime):
	}
	l.end()
}

// explainLoss returns why a connection was lost, with what the program said, if there is one.
func explainLoss(err error, said *output) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	text := core.CleanText(core.Clip(err.Error(), 500))
	if detail := said.last(); detail != "" {
		text += "; it said: " + detail
	}
	return errors.New(text)
}

// connect opens the connection.
func (s *Server) connect(ctx context.Context) (*link, error) {
	client := sdk.NewClient(&sdk.Implementation{Name: "bobbin", Title: "Bobbin", Version: "1"}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{}, KeepAlive: keepAlive, KeepAliveFailureThreshold: 2,
		Logger:                 slog.New(slog.DiscardHandler),
		MultiRoundTrip:         &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { core.Signal(s.stale) },
	})
	client.AddSendingMiddleware(withoutCaching)
	first, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	if s.definition.URL != "" {
		headers, err := s.o.Env.Headers(s.definition)
		if err != nil {
			return nil, err
		}
		secret, err := s.o.Env.Secret(s.definition)
		if err != nil {
			return nil, err
		}
		d := s.definition
		web := &web{headers: headers, base: &http.Transport{
			DialContext: tools.GuardedDial(d.PrivateHosts, netguard.Dialer{}), ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxHeader,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: probeTime,
			IdleConnTimeout: idleTime, MaxIdleConnsPerHost: maxIdleConns,
		}}
		transport := &sdk.StreamableClientTransport{
			Endpoint: d.URL, MaxEventSize: maxMessage, HTTPClient: &http.Client{Transport: web, CheckRedirect: tools.CheckRedirect},
		}
		if d.OAuth.TokenURL != "" {
			parameters := url.Values{"resource": {d.URL}}
			for name, value := range d.OAuth.Parameters {
				parameters.Set(name, value)
			}
			issued := &tokens{
				config: clientcredentials.Config{
					ClientID: d.OAuth.ClientID, ClientSecret: secret, TokenURL: d.OAuth.TokenURL, Scopes: d.OAuth.Scopes, EndpointParams: parameters,
				},
				client: &http.Client{Transport: web.base, CheckRedirect: tools.CheckRedirect},
			}
			transport.OAuthHandler = issued
			s.tokens.Store(issued)
		}
		session, err := client.Connect(first, transport, nil)
		if err != nil {
			web.base.CloseIdleConnections()
			if first.Err() != nil {
				err = fmt.Errorf("it does not answer within %s", connectTime)
			}
			return nil, explainLoss(err, nil)
		}
		return &link{session: session, end: web.base.CloseIdleConnections}, nil
	}
	return s.connectProgram(first, client)
}

// withoutCaching has the SDK serve no list a second time, whatever the server allows: a list shows
// whether the server still answers.
func withoutCaching(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, req)
		if list, ok := result.(*sdk.ListToolsResult); ok && err == nil {
			list.TTLMs = 0
		}
		return result, err
	}
}

// exitTime is how long a program may take to end when its standard input is closed.
const exitTime = 2 * time.Second

// connectProgram starts the program and connects to it. The program lives until the link is closed.
func (s *Server) connectProgram(first context.Context, client *sdk.Client) (*link, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(first))
	cmd, err := tools.NewProcess(ctx, s.definition, s.o.Env)
	if err != nil {
		cancel()
		return nil, err
	}
	said := newOutput(ctx, s.o.Logger, s.hide)
	cmd.Stderr = said
	in, err := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err = cmp.Or(err, err2); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("the program %s could not be started", s.definition.Command)
	}
	stop := func() { // and kills it and what it has started if it does not end soon
		late := time.AfterFunc(exitTime, cancel)
		defer late.Stop()
		defer cancel()
		_ = cmd.Wait()           // why it ended is in what it said
		_ = tools.KillGroup(cmd) // what it has left behind
	}
	session, err := client.Connect(first, &sdk.IOTransport{Reader: newMessages(&slowBody{ReadCloser: out, ctx: ctx, limit: said.pace}, said), Writer: in, MaxLineLength: maxMessage}, nil)
	if err != nil {
		if first.Err() != nil {
			err = fmt.Errorf("it does not answer within %s", connectTime)
		}
		cancel()
		stop()
		return nil, explainLoss(err, said)
	}
	return &link{session: session, end: stop, said: said}, nil
}
