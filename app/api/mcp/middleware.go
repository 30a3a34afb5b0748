package mcp

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

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
	var wire *jsonrpc.Error
	if errors.As(err, &wire) {
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
