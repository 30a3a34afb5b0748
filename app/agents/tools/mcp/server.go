package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
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
	definition core.ToolDefinition
	o          Options
	listing    atomic.Pointer[tools.Listing]
	tried      chan struct{}
	once       sync.Once     // closes tried
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
	s := &Server{definition: d, o: o, tried: make(chan struct{}), stale: make(chan struct{}, 1), secrets: o.Env.Secrets(d), first: map[string]strictness{}}
	s.listing.Store(&tools.Listing{Problem: "it is not connected yet"})
	return s
}

// Listing returns the server's tools as they were listed last.
func (s *Server) Listing() tools.Listing { return *s.listing.Load() }

// Tried is closed when the first attempt to connect has ended.
func (s *Server) Tried() <-chan struct{} { return s.tried }

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
		s.listing.Store(&listing)
		s.once.Do(func() { close(s.tried) })
		if core.Sleep(ctx, pause) != nil {
			return
		}
	}
}

// serve connects and keeps the list of tools current until the connection is lost, or ctx ends. The
// error says why it ended.
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
	if err := s.list(first, link.session); err != nil {
		return explainLoss(err, link.said)
	}
	s.session.Store(link.session)
	defer s.session.Store(nil)
	s.once.Do(func() { close(s.tried) })
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
