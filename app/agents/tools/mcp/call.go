package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/core"
)

// maxErrorText bounds what the model reads of a fault of the server, in bytes.
const maxErrorText = 4 << 10

// callTool calls a tool of the server once. Errors are for the model.
func (s *Server) callTool(ctx context.Context, name, raw string, repeatable bool) (string, error) {
	arguments, err := parseObject(raw)
	if err != nil {
		return "", err
	}
	session := s.connected()
	if session == nil {
		return "", s.notConnectedError()
	}
	result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return "", s.explainCall(ctx, err, repeatable)
	}
	text := s.hide(resultText(result))
	if result.IsError {
		if text == "" {
			text = "the tool failed and does not say why"
		}
		return "", errors.New(core.Clip(text, maxErrorText))
	}
	return text, nil
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
	s.markStale()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
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

// resultText returns a result as text: its texts, and what there is of anything else.
func resultText(r *sdk.CallToolResult) string {
	var parts []string
	for _, content := range r.Content {
		parts = append(parts, contentText(content))
	}
	if len(parts) == 0 && r.StructuredContent != nil {
		if text, err := json.Marshal(r.StructuredContent); err == nil {
			return string(text)
		}
	}
	return strings.Join(parts, "\n")
}

// contentText returns one part of a result as text.
func contentText(content sdk.Content) string {
	switch c := content.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return placeholder("image", c.MIMEType, len(c.Data))
	case *sdk.AudioContent:
		return placeholder("audio", c.MIMEType, len(c.Data))
	case *sdk.ResourceLink:
		return fmt.Sprintf("[resource %s, %s]", core.Clip(c.URI, 1000), core.Clip(c.Name, 200))
	case *sdk.EmbeddedResource:
		if c.Resource != nil {
			return resourceText(c.Resource)
		}
	}
	return "[content that cannot be shown]"
}

// placeholder stands for what is not text.
func placeholder(what, kind string, size int) string {
	return fmt.Sprintf("[%s %s, %d bytes]", what, core.Clip(kind, 100), size)
}

// resourceText returns the content of a resource as text.
func resourceText(r *sdk.ResourceContents) string {
	if len(r.Blob) > 0 {
		return placeholder("resource "+core.Clip(r.URI, 1000), r.MIMEType, len(r.Blob))
	}
	return r.Text
}
