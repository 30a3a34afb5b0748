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
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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

// Methods of the protocol that the server answers in its own way.
const (
	methodCallTool      = "tools/call"
	methodListResources = "resources/list"
	methodReadResource  = "resources/read"
)

// answerErrors ends a call with its HTTP request, whatever revision of the protocol it has, and
// lets no error out of the server that says something internal.
//
//nolint:contextcheck,nolintlint // the call has the SDK's context, and ends with the request's, too
func (s *Server) answerErrors(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok { // what else the SDK handles has none
			ended := x.request.Context() // the SDK does not cancel the calls of clients of older revisions
			defer context.AfterFunc(ended, func() { cancel(context.Cause(ended)) })()
		}
		defer func() {
			if v := recover(); v != nil {
				res, err = nil, s.protocolError(ctx, fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
			}
		}()
		if res, err = next(ctx, method, req); err != nil {
			return nil, s.protocolError(ctx, err)
		}
		return res, nil
	}
}

// protocolError returns the error of the protocol for err.
func (s *Server) protocolError(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return err // of the SDK: it quotes the request only
	}
	text, callers := s.Explain(ctx, err)
	code := int64(jsonrpc.CodeInternalError)
	if callers {
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: code, Message: text}
}

// checkScopes shows and lets happen what the scopes of the caller's key or token allow.
func (s *Server) checkScopes(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		caller, _ := core.IdentityFrom(ctx)
		switch method {
		case methodCallTool:
			if call, ok := req.(*sdk.CallToolRequest); ok {
				if err := handlers.CheckScope(caller, s.scopes[call.Params.Name]); err != nil {
					return s.toolError(ctx, err), nil
				}
			}
		case methodReadResource:
			if err := handlers.CheckScope(caller, core.CanRead); err != nil {
				return nil, err
			}
		case methodListResources:
			return s.listResources(ctx, caller, req)
		}
		res, err := next(ctx, method, req)
		switch list := res.(type) {
		case *sdk.ListToolsResult:
			list.Tools = slices.DeleteFunc(list.Tools, func(t *sdk.Tool) bool { return !caller.Rights.Has(s.scopes[t.Name]) })
		case *sdk.ListResourceTemplatesResult:
			list.ResourceTemplates = slices.DeleteFunc(list.ResourceTemplates, func(t *sdk.ResourceTemplate) bool { return !canRead(caller, t.URITemplate) })
		}
		return res, err
	}
}
