package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/core"
)

// maxErrorText bounds what the model reads of a fault of the server, in bytes.
const maxErrorText = 4 << 10

// contentText returns the content of a result, which fitMessage made one text.
func contentText(content []sdk.Content) string {
	for _, c := range content {
		if text, ok := c.(*sdk.TextContent); ok {
			return text.Text
		}
	}
	return ""
}

// parseObject returns the arguments as a JSON object, never nil.
func parseObject(raw string) (map[string]any, error) {
	arguments := map[string]any{}
	if strings.TrimSpace(raw) == "" {
		return arguments, nil
	}
	decoder := json.NewDecoder(strings.NewReader(raw))
	decoder.UseNumber() // large numbers keep their digits
	if err := decoder.Decode(&arguments); err != nil || arguments == nil || decoder.More() {
		return nil, errors.New("the arguments are not a JSON object")
	}
	return arguments, nil
}

// notConnectedError says that calls cannot be made at the moment.
func (s *Server) notConnectedError() error {
	return fmt.Errorf("the server %s is not connected at the moment, so nothing was called; it is being connected again", s.definition.Name)
}

// explainCall translates an error of a call for the model. After one that is no answer of the server
// it is seen whether it still answers.
func (s *Server) explainCall(ctx context.Context, err error, repeatable bool) error {
	if answer, ok := errors.AsType[*jsonrpc.Error](err); ok && !isLocal(answer) {
		return fmt.Errorf("the server %s refused the call: %s", s.definition.Name, core.CleanText(core.Clip(s.hide(answer.Message), maxErrorText)))
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("the server %s executed the call, and the answer could not be read: it is no result of a call", s.definition.Name)
	}
	s.markStale()
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

// isLocal reports whether an error looks like an answer of the server, and comes from the SDK because
// the server was not reached.
func isLocal(e *jsonrpc.Error) bool {
	const clientClosing, serverClosing, rejected = -32003, -32004, -32005
	return e.Code == clientClosing || e.Code == serverClosing || e.Code == rejected
}
