package mcp

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2/clientcredentials"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/netguard"
)

// Options are what a Server needs besides its definition. Env is required.
type Options struct {
	Env    tools.Environment
	Logger *slog.Logger // nil = nothing is logged
	// Pause is the time between two attempts to connect, at first; 0 = 1 s. It doubles up to a minute.
	Pause time.Duration
}

// Server is one MCP server. Safe for concurrent use.
type Server struct {
	*tools.Listed

	definition core.ToolDefinition
	o          Options
	stale      chan struct{} // has room for one: the tools are to be listed again
	secrets    []string
	tokens     atomic.Pointer[tokens]            // of the latest connection; nil = it needs none
	session    atomic.Pointer[sdk.ClientSession] // nil = not connected

	mu    sync.Mutex
	first map[string]strictness // guarded by mu; of each tool when it was listed first, by the server's name
}

// strictness is what a server says that lets a tool run without asking, or a second time.
type strictness struct {
	approval   core.ApprovalMode
	repeatable bool
}

// maxFirst bounds the tools that are remembered: a server that lists more must ask for the others.
const maxFirst = 1000

// NewServer returns the server of a definition of the kind mcp. It does nothing until Run.
func NewServer(d core.ToolDefinition, o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = o.Logger.With("server", d.Name)
	o.Pause = cmp.Or(o.Pause, time.Second)
	return &Server{Listed: tools.NewListed("it is not connected yet"), definition: d, o: o, stale: make(chan struct{}, 1), secrets: o.Env.Secrets(d), first: map[string]strictness{}}
}

// Times of the connection.
const (
	connectTime = 30 * time.Second // until the tools are listed
	probeTime   = 10 * time.Second // for a list after a call that went wrong
	listPause   = time.Second      // between two lists
	maxPause    = time.Minute      // between two attempts to connect
	healthyTime = time.Minute      // a connection that lasted so long was a good one
	keepAlive   = 30 * time.Second // between two pings
)

// Run keeps the server connected until ctx ends.
func (s *Server) Run(ctx context.Context) {
	reason := ""
	for pause := s.o.Pause; ; pause = min(2*pause, maxPause) {
		begin := time.Now()
		err := s.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begin) > healthyTime {
			pause = s.o.Pause
		}
		level, last := slog.LevelWarn, reason
		if reason = s.hide(err.Error()); reason == last { // it was said
			level = slog.LevelDebug
		}
		s.o.Logger.Log(ctx, level, "mcp server is not connected", "reason", reason, "pause", pause)
		listing := s.Listing()
		listing.Problem = reason
		s.Set(listing)
		if core.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// serve connects and keeps the list of tools current until the connection is lost, or ctx ends: the error says why.
func (s *Server) serve(ctx context.Context) error {
	link, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer link.close()
	ended := make(chan error, 1)
	go func() { ended <- link.session.Wait() }()
	first, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	defer s.session.Store(nil)
	if err := s.list(first, link.session); err != nil {
		return explainLoss(err, link.said)
	}
	s.o.Logger.InfoContext(ctx, "mcp server connected", "tools", len(s.Listing().Tools), "protocol", link.session.InitializeResult().ProtocolVersion)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			if err == nil {
				err = errors.New("it ended the connection")
			}
			return explainLoss(err, link.said)
		case <-s.stale:
		}
		// The tools have changed, or it is to be seen whether the server still answers.
		probe, cancel := context.WithTimeout(ctx, probeTime)
		err := s.list(probe, link.session)
		cancel()
		if err != nil {
			return explainLoss(err, link.said)
		}
		_ = core.Sleep(ctx, listPause) // the loop sees the end of ctx
	}
}

// hide returns a text of the server without the secrets that it was given.
func (s *Server) hide(text string) string {
	secrets := s.secrets
	if t := s.tokens.Load(); t != nil && t.token.Load() != nil {
		secrets = append(slices.Clip(secrets), t.token.Load().AccessToken)
	}
	return tools.HideSecrets(text, secrets)
}

// maxErrorText bounds what the model reads of a fault of the server, in bytes.
const maxErrorText = 4 << 10

// notConnectedError says that calls cannot be made at the moment.
func (s *Server) notConnectedError() error {
	return fmt.Errorf("the server %s is not connected at the moment, so nothing was called; it is being connected again", s.definition.Name)
}

// explainCall translates an error of a call for the model. After one that is no answer of the server
// it is seen whether it still answers.
func (s *Server) explainCall(ctx context.Context, err error, repeatable bool) error {
	unreached := []int64{-32003, -32004, -32005} // look like answers of the server, and come from the SDK
	if answer, ok := errors.AsType[*jsonrpc.Error](err); ok && !slices.Contains(unreached, answer.Code) {
		return fmt.Errorf("the server %s refused the call: %s", s.definition.Name, core.CleanText(core.Clip(s.hide(answer.Message), maxErrorText)))
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("the server %s executed the call, and the answer could not be read: it is no result of a call", s.definition.Name)
	}
	core.Signal(s.stale)
	dial, _ := errors.AsType[*net.OpError](err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, sdk.ErrConnectionClosed), dial != nil && dial.Op == "dial": // nothing was sent
		return s.notConnectedError()
	case repeatable:
		return fmt.Errorf("the connection to the server %s was lost during the call", s.definition.Name)
	default:
		return fmt.Errorf("the connection to the server %s was lost during the call; whether it took effect is not known", s.definition.Name)
	}
}

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
	// The SDK serves no list a second time, whatever the server allows: a list shows whether the server still answers.
	client.AddSendingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			result, err := next(ctx, method, req)
			if list, ok := result.(*sdk.ListToolsResult); ok && err == nil {
				list.TTLMs = 0
			}
			return result, err
		}
	})
	first, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	if s.definition.URL != "" {
		d := s.definition
		headers, err := s.o.Env.Headers(d)
		secret, err2 := s.o.Env.Secret(d)
		if err = cmp.Or(err, err2); err != nil {
			return nil, err
		}
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
