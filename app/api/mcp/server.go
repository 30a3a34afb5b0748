// Package mcp serves the Model Context Protocol over Bobbin's own use cases: tools and resources
// for the models of other programs, at one endpoint.
//
// The endpoint is stateless streamable HTTP: no request depends on an earlier one, so any replica
// answers any of them. The official SDK speaks the protocol; this package has the tools. A caller
// sees and calls what the scopes of its key or token allow.
//
// A tool that waits for a run only listens: the run continues when the call ends.
package mcp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// Options are the parts that the server needs.
type Options struct {
	handlers.Services
	Streams *handlers.StreamLimiter
	Version string // of Bobbin
	// Explain returns what may be shown of an error, and whether it is the caller's fault; it
	// logs what may not be shown.
	Explain func(ctx context.Context, err error) (text string, callers bool)
}

// Server answers the requests of MCP clients. Safe for concurrent use.
type Server struct {
	Options
	handler http.Handler
	scopes  map[string]core.Scopes // of the tools, by name
}

// How long a client may use what it has read.
const (
	listTTL     = 5 * time.Minute // of what depends on the key only
	resourceTTL = 0               // the context changes with each message
)

// bodyCopies is how often the body is in memory while a call lasts: the text, what the SDK reads
// twice, and the arguments.
const bodyCopies = 4

// instructions tell the model of the client what this server is for.
const instructions = "Bobbin runs agents that keep long conversations (sessions). send_message asks an agent and returns its answer. " +
	"If the answer takes longer than wait_seconds, the result has a run_id: call wait_for_run with it. " +
	"The other tools list, read and search conversations, say what an agent's context window contains, and keep memories."

// New returns the server.
func New(o Options) *Server {
	s := &Server{Options: o, scopes: map[string]core.Scopes{}}
	server := sdk.NewServer(&sdk.Implementation{Name: "bobbin", Title: "Bobbin", Version: o.Version}, &sdk.ServerOptions{
		Instructions: instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}}, // no notifications of changes
		SetCacheable: func(_ context.Context, req sdk.Request, c *sdk.Cacheable) {
			c.CacheScope, c.TTLMs = "private", int(listTTL.Milliseconds())
			if _, ok := req.(*sdk.ReadResourceRequest); ok {
				c.TTLMs = resourceTTL
			}
		},
	})
	s.addRunTools(server)
	s.addSessionTools(server)
	s.addContextTools(server)
	s.addMemoryTools(server)
	s.addResources(server)
	server.AddReceivingMiddleware(s.answerErrors, s.checkScopes)
	s.handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
		Stateless:                    true,
		PropagateRequestCancellation: true,
		// package auth has the rules for requests without a key; the address of a request with
		// a key says nothing behind a proxy on this machine.
		DisableLocalhostProtection: true,
		MaxRequestBodyBytes:        -1, // the body has been read
	})
	return s
}

// exchange is the HTTP request behind a call.
type exchange struct {
	request *http.Request
	stream  *handlers.PacedStream
	reserve func(answer int64) error // memory for an answer
}

type exchangeKey struct{}

// exchangeOf returns the request behind a call.
func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// Serve answers POST /mcp.
func (s *Server) Serve(c *gin.Context) error {
	body, err := handlers.ReadText(c)
	if err != nil {
		return err
	}
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return &core.Error{Kind: core.ErrInvalid, Code: handlers.CodeMalformed, Message: "the body must be one JSON-RPC message, a JSON object; send the messages of a batch one by one"}
	}
	return s.Streams.WithSlot(c, func(handlers.RunStream) error {
		values, _ := core.JSONSize(body)
		size := core.JSONMemory(bodyCopies*int64(len(body)), values)
		reserve := func(answer int64) error { return handlers.ReserveMemory(c, size+answer) }
		if err := reserve(0); err != nil {
			return err
		}
		w := handlers.NewPacedStream(c)
		defer w.Close()
		x := &exchange{request: c.Request, stream: w, reserve: reserve}
		r := c.Request.WithContext(context.WithValue(c.Request.Context(), exchangeKey{}, x))
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.handler.ServeHTTP(w, r)
		return nil
	})
}
