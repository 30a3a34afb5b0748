package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os/exec"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
)

// maxMessage bounds one message of a server, in bytes.
const maxMessage = 16 << 20

// link is a connection to a server.
type link struct {
	session *sdk.ClientSession
	end     func()        // ends what is behind the connection
	detail  func() string // what the program said before it ended; empty = nothing
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

// explain returns why the connection was lost, with what the program said.
func (l *link) explain(err error) error { return explainLoss(err, l.detail()) }

func explainLoss(err error, detail string) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	text := core.CleanText(core.Clip(err.Error(), 500))
	if detail != "" {
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
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { s.markStale() },
	})
	client.AddSendingMiddleware(withoutCaching)
	first, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	if s.definition.URL != "" {
		return s.connectHTTP(first, client)
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

// connectHTTP connects to the server at a URL.
func (s *Server) connectHTTP(ctx context.Context, client *sdk.Client) (*link, error) {
	headers, err := s.o.Env.Headers(s.definition)
	if err != nil {
		return nil, err
	}
	secret, err := s.o.Env.Secret(s.definition)
	if err != nil {
		return nil, err
	}
	web := newWeb(s.definition, headers, secret)
	s.tokens.Store(web.tokens)
	transport := &sdk.StreamableClientTransport{
		Endpoint: s.definition.URL, MaxEventSize: maxMessage,
		HTTPClient: &http.Client{Transport: web, CheckRedirect: tools.CheckRedirect},
	}
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		web.base.CloseIdleConnections()
		switch unsupported := web.unsupported.Load(); {
		case ctx.Err() != nil:
			err = fmt.Errorf("it does not answer within %s", connectTime)
		case unsupported != nil: // the SDK may say only that the connection was closed after it
			err = *unsupported
		}
		return nil, explainLoss(err, "")
	}
	return &link{session: session, end: web.base.CloseIdleConnections, detail: func() string { return "" }}, nil
}

// exitTime is how long a program may take to end when its standard input is closed.
const exitTime = 2 * time.Second

// connectProgram starts the program and connects to it. The program lives until the link is closed.
func (s *Server) connectProgram(ctx context.Context, client *sdk.Client) (*link, error) {
	first := ctx
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cmd, err := tools.NewProcess(ctx, s.definition, s.o.Env)
	if err != nil {
		cancel()
		return nil, err
	}
	said := newOutput(ctx, s.o.Logger, s.hide)
	cmd.Stderr = said
	in, err := cmd.StdinPipe()
	if err == nil {
		out, pipeErr := cmd.StdoutPipe()
		if err = pipeErr; err == nil {
			transport := &sdk.IOTransport{Reader: newFilter(out, said), Writer: in, MaxLineLength: maxMessage}
			if err = cmd.Start(); err == nil {
				return startProgram(first, client, transport, &program{cmd: cmd, cancel: cancel, said: said})
			}
		}
	}
	cancel()
	return nil, fmt.Errorf("the program %s could not be started", s.definition.Command)
}

// program is a server that was started.
type program struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	said   *output
}

// startProgram begins to speak with a program that was started.
func startProgram(ctx context.Context, client *sdk.Client, transport sdk.Transport, p *program) (*link, error) {
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("it does not answer within %s", connectTime)
		}
		p.cancel()
		p.stop()
		return nil, explainLoss(err, p.said.last())
	}
	return &link{session: session, end: p.stop, detail: p.said.last}, nil
}

// stop waits until the program has ended, and kills it and what it has started if that takes too
// long.
func (p *program) stop() {
	late := time.AfterFunc(exitTime, p.cancel)
	defer late.Stop()
	defer p.cancel()
	_ = p.cmd.Wait()           // why it ended is in what it said
	_ = tools.KillGroup(p.cmd) // what it has left behind
}
