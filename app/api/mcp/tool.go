package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/api/handlers"
	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// tool is what clients read of a tool.
type tool struct {
	name, title, description string
	scope                    core.Scopes
	effect                   effect
	// open: it asks agents, which may have tools that reach beyond Bobbin.
	open bool
	// answer is the memory that is reserved for what the tool reads; 0 = it reserves by itself.
	answer int64
}

// effect says what a tool changes.
type effect int

const (
	reads    effect = iota // nothing
	adds                   // it adds something with each call
	replaces               // it ends or removes something; a repetition changes nothing more
)

type call struct {
	tenant  core.Tenant
	request *sdk.CallToolRequest
}

// addTool adds a tool whose arguments are an In and whose result is an Out, both structs. The
// result of an Out with the method failed is a failure if that reports it.
func addTool[In, Out any](s *Server, server *sdk.Server, t tool, answer func(ctx context.Context, c call, in In) (Out, error)) {
	input, check := mustSchema[In]()
	output, _ := mustSchema[Out]()
	s.scopes[t.name] = t.scope
	destructive := t.effect == replaces
	server.AddTool(&sdk.Tool{
		Name: t.name, Title: t.title, Description: t.description, Annotations: &sdk.ToolAnnotations{
			ReadOnlyHint: t.effect == reads, DestructiveHint: &destructive, IdempotentHint: t.effect != adds, OpenWorldHint: &t.open,
		}, InputSchema: input, OutputSchema: output,
	}, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		out, err := callTool(ctx, t, req, check, answer)
		if err != nil {
			return s.toolError(ctx, err), nil
		}
		text, err := core.EncodeJSON(out)
		if err != nil {
			return nil, fmt.Errorf("encode the result of %s: %w", t.name, err)
		}
		failed, ok := any(out).(interface{ failed() bool })
		return &sdk.CallToolResult{
			Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text), IsError: ok && failed.failed(),
		}, nil
	})
}

// callTool checks the arguments and calls the tool.
func callTool[In, Out any](ctx context.Context, t tool, req *sdk.CallToolRequest, check *jsonschema.Resolved, answer func(context.Context, call, In) (Out, error)) (out Out, err error) {
	var in In
	raw := req.Params.Arguments
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := handlers.Decode(raw, &in); err != nil {
		return out, argumentsError(err)
	}
	var given map[string]any
	if err := json.Unmarshal(raw, &given); err != nil {
		return out, argumentsError(err)
	}
	maps.DeleteFunc(given, func(_ string, value any) bool { return value == nil }) // null = left out
	if err := check.Validate(given); err != nil {
		return out, core.Errorf(core.ErrInvalid, "the arguments are not valid: %s", core.Clip(strings.TrimPrefix(err.Error(), "validating root: "), 500))
	}
	if err := checkIDs(in); err != nil {
		return out, err
	}
	if t.answer > 0 {
		if err := exchangeOf(ctx).reserve(t.answer); err != nil {
			return out, err
		}
	}
	caller, _ := core.IdentityFrom(ctx)
	return answer(ctx, call{tenant: caller.Tenant(), request: req}, in)
}

// checkIDs returns ErrNotFound for an id in the arguments that is none. Those that may be left out may be
// empty.
func checkIDs(in any) error {
	values := reflect.ValueOf(in)
	for _, f := range ops.Fields(values.Type()) {
		noun, isID := strings.CutSuffix(f.Name, "_id")
		if !isID {
			continue
		}
		id := values.FieldByIndex(f.Index).String()
		if !core.ValidID(id) && (id != "" || !strings.HasSuffix(f.Tag.Get("json"), ",omitempty")) {
			return core.Errorf(core.ErrNotFound, "%s %q does not exist", noun, core.Clip(id, 64))
		}
	}
	return nil
}

// argumentsError returns the error with the word that callers of tools know.
func argumentsError(err error) error {
	return core.Errorf(core.ErrInvalid, "the arguments are not valid: %s", strings.ReplaceAll(err.Error(), "the body", "the object"))
}

// toolError returns the result of a call that failed, which the client's model reads.
func (s *Server) toolError(ctx context.Context, err error) *sdk.CallToolResult {
	text, _ := s.Explain(ctx, err)
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, IsError: true}
}

// mustSchema returns the schema of a struct, encoded once for all lists of tools. The structs are
// constants of this package, so an error is a programming error.
func mustSchema[T any]() (json.RawMessage, *jsonschema.Resolved) {
	schema, err := jsonschema.For[T](nil)
	if err == nil {
		dropNull(schema)
		for _, f := range ops.Fields(reflect.TypeFor[T]()) {
			limited := schema.Properties[f.Name] // by the tags of the field, which are those of operations
			for tag, limit := range map[string]**float64{"min": &limited.Minimum, "max": &limited.Maximum} {
				if n, err := strconv.ParseFloat(f.Tag.Get(tag), 64); err == nil {
					*limit = &n
				}
			}
			for _, word := range f.Enum() {
				limited.Enum = append(limited.Enum, word)
			}
		}
		var resolved *jsonschema.Resolved
		resolved, err = schema.Resolve(nil)
		raw, encodeErr := json.Marshal(schema)
		if err = cmp.Or(err, encodeErr); err == nil {
			return raw, resolved
		}
	}
	panic("mcp: " + err.Error())
}

// dropNull removes null from the types: what is nil is left out, and not every provider takes
// a list of types.
func dropNull(schema *jsonschema.Schema) {
	if len(schema.Types) == 2 && schema.Types[0] == "null" {
		schema.Type, schema.Types = schema.Types[1], nil
	}
	if schema.Items != nil {
		dropNull(schema.Items)
	}
	for _, property := range schema.Properties {
		dropNull(property)
	}
}
