package tools

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// operation is an operation of an OpenAPI document.
type operation struct {
	method, path string
	item         *openapi3.PathItem
	*openapi3.Operation
}

// servers returns the servers of the operation: its own before those of its path and the document's.
func (o operation) servers(document *openapi3.T) openapi3.Servers {
	switch {
	case o.Servers != nil && len(*o.Servers) > 0:
		return *o.Servers
	case len(o.item.Servers) > 0:
		return o.item.Servers
	default:
		return document.Servers
	}
}

// bodyArgument is the argument that is the body of the request.
const bodyArgument = "body"

// tool returns the tool of the operation: its parameters and its body are the arguments.
func (o operation) tool(d core.ToolDefinition, document *openapi3.T, base, name string, web Web) (*Custom, error) {
	switch {
	case !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, o.method):
		return nil, fmt.Errorf("the method %s is not supported", o.method)
	case !strings.HasPrefix(o.path, "/"): // it would be part of the host
		return nil, errors.New("its path does not begin with /")
	}
	path, _, _ := strings.Cut(o.path, "#") // documents have fragments to tell operations apart
	r := requestTemplate{method: o.method, address: base + path}
	a := argumentSchemas{inliner{document: document}, map[string]any{}, []string{}}
	if err := o.addParameters(d, &r, &a); err != nil {
		return nil, err
	}
	if err := o.addBody(&r, &a); err != nil {
		return nil, err
	}
	inPath, ok := placeholders(path)
	if !ok {
		return nil, errors.New("its path is not valid")
	}
	for _, name := range inPath {
		if !slices.ContainsFunc(r.parameters, func(p parameter) bool { return p.name == name && p.in == openapi3.ParameterInPath }) {
			return nil, fmt.Errorf("its path has {%s}, which is no parameter in path", core.Clip(name, 100))
		}
	}
	slices.Sort(a.required)
	parameters, err := FitSchema(map[string]any{"type": "object", "properties": a.properties, "required": a.required})
	if err != nil {
		return nil, err
	}
	schema, err := CompileSchema(parameters)
	if err != nil {
		schema = nil // a schema of another draft: the server checks the arguments
	}
	spec := llm.ToolSpec{Name: name, Description: FitDescription(o.Summary + "\n" + strings.TrimPrefix(o.Description, o.Summary)), Parameters: parameters}
	return newRequestTool(d, spec, r, schema, web), nil
}

// argumentSchemas is the schemas of the arguments of an operation.
type argumentSchemas struct {
	inliner
	properties map[string]any
	required   []string
}

// add adds the schema of an argument.
func (a *argumentSchemas) add(name string, schema any, required bool) {
	a.properties[name] = schema
	if required {
		a.required = append(a.required, name)
	}
}

// addParameters makes the parameters arguments, by names that providers take.
func (o operation) addParameters(d core.ToolDefinition, r *requestTemplate, a *argumentSchemas) error {
	var list []*openapi3.Parameter
	for _, ref := range append(slices.Clone(o.item.Parameters), o.Parameters...) {
		if ref.Value == nil {
			return errors.New("it has a parameter that cannot be resolved")
		}
		list = append(slices.DeleteFunc(list, func(p *openapi3.Parameter) bool {
			other := ref.Value
			return p.In == other.In && (p.Name == other.Name || p.In == openapi3.ParameterInHeader && strings.EqualFold(p.Name, other.Name))
		}), ref.Value)
	}
	fixed := fixedHeaders(d, o.method)
	for _, p := range list {
		if p.In == openapi3.ParameterInCookie && p.Required && !containsFold(fixed, "Cookie") {
			return fmt.Errorf("parameter %s: it is a cookie that is required; set Cookie in headers", core.Clip(p.Name, 100))
		}
	}
	list = slices.DeleteFunc(list, func(p *openapi3.Parameter) bool {
		isCookie := p.In == openapi3.ParameterInCookie || p.In == openapi3.ParameterInHeader && strings.EqualFold(p.Name, "Cookie")
		return isCookie || p.In == openapi3.ParameterInHeader && containsFold(fixed, p.Name)
	})
	names := &Namer{taken: map[string]bool{bodyArgument: o.RequestBody != nil}}
	for _, p := range list {
		names.own = append(names.own, p.Name)
	}
	for _, p := range list {
		parameter := parameter{argument: names.Name(p.Name), name: p.Name, in: p.In, isJSON: len(p.Content) > 0, isList: p.Explode == nil || *p.Explode}
		schemaRef, err := parameterSchema(p)
		if err != nil {
			return fmt.Errorf("parameter %s: %w", core.Clip(p.Name, 100), err)
		}
		description := p.Description
		if parameter.argument != p.Name {
			description = fmt.Sprintf("%s in %s. %s", p.Name, p.In, description)
		}
		schema := map[string]any{}
		if schemaRef != nil {
			inlined, err := a.inline(schemaRef)
			if err != nil {
				return err
			}
			if object, ok := inlined.(map[string]any); ok {
				schema = object
			}
		}
		if description != "" {
			schema["description"] = FitDescription(description)
		}
		r.parameters = append(r.parameters, parameter)
		a.add(parameter.argument, schema, p.Required || p.In == openapi3.ParameterInPath)
	}
	return nil
}

// parameterSchema returns the schema of a parameter, or says why it is not supported.
func parameterSchema(p *openapi3.Parameter) (*openapi3.SchemaRef, error) {
	styles := map[string]string{openapi3.ParameterInPath: openapi3.SerializationSimple, openapi3.ParameterInHeader: openapi3.SerializationSimple, openapi3.ParameterInQuery: openapi3.SerializationForm}
	media := p.Content.Get(jsonType)
	switch {
	case p.Name == "":
		return nil, errors.New("it has no name")
	case styles[p.In] == "":
		return nil, fmt.Errorf("it is in %q, which is not supported", core.Clip(p.In, 100))
	case p.In == openapi3.ParameterInHeader && !IsHeaderName(p.Name):
		return nil, errors.New("it is not the name of a header")
	case media != nil:
		return media.Schema, nil
	case len(p.Content) > 0:
		return nil, errors.New("its content is not JSON, which is not supported")
	case p.Style != "" && p.Style != styles[p.In]:
		return nil, fmt.Errorf("its style %q is not supported", core.Clip(p.Style, 100))
	case p.Schema != nil && p.Schema.Value != nil && p.Schema.Value.Type.Is(typeObject):
		return nil, errors.New("it is an object, which is supported in the body only")
	}
	return p.Schema, nil
}

// ReservedHeaders are those that a request has by itself, and no definition and no argument sets.
func ReservedHeaders() []string {
	return []string{
		"Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "Accept-Encoding", "Te", "Trailer", "Upgrade", "Expect", "Proxy-Authorization",
		"Mcp-Session-Id", "Mcp-Protocol-Version",
	}
}

// fixedHeaders returns the headers of a request that no argument sets: those that OpenAPI ignores as
// parameters, those of HTTP itself, and those of the definition.
func fixedHeaders(d core.ToolDefinition, method string) []string {
	names := []string{"Accept", "Content-Type", "Authorization"}
	names = append(names, ReservedHeaders()...)
	if !isReading(method) {
		names = append(names, keyHeader)
	}
	return slices.AppendSeq(names, maps.Keys(d.Headers))
}

// containsFold reports whether a name, in any case, is in the list.
func containsFold(list []string, name string) bool {
	return slices.ContainsFunc(list, func(other string) bool { return strings.EqualFold(other, name) })
}

// jsonType is the media type of bodies.
const jsonType = "application/json"

// addBody makes the body of the request, which is JSON, an argument.
func (o operation) addBody(r *requestTemplate, a *argumentSchemas) error {
	switch {
	case o.RequestBody == nil:
		return nil
	case o.RequestBody.Value == nil:
		return errors.New("its body cannot be resolved")
	}
	body := o.RequestBody.Value
	for _, contentType := range slices.Sorted(maps.Keys(body.Content)) {
		if kind := mediaType(contentType); kind != jsonType && (r.contentType != "" || !strings.HasSuffix(kind, "+json")) {
			continue
		}
		r.contentType = contentType
	}
	switch {
	case r.contentType == "" && body.Required:
		return errors.New("its body is not JSON, which is not supported")
	case r.contentType == "":
		return nil
	}
	var schema any = map[string]any{} // anything
	if ref := body.Content[r.contentType].Schema; ref != nil {
		var err error
		if schema, err = a.inline(ref); err != nil {
			return err
		}
	}
	a.add(bodyArgument, schema, body.Required)
	return nil
}

// parameter is a parameter of a request.
type parameter struct {
	argument string // its name for the model
	name, in string
	isJSON   bool // its value is a JSON text
	isList   bool // each item of a list is a parameter of the query
}

// text returns a value as text; false = it is missing.
func (p parameter) text(value any) (string, bool) {
	if list, ok := value.([]any); ok && len(list) == 0 && !p.isJSON {
		return "", false
	}
	if p.isJSON && value != nil {
		text, err := core.EncodeJSON(value)
		return string(text), err == nil
	}
	return textOf(value)
}

// pairs returns the pairs of the query for a value, whose text is known.
func (p parameter) pairs(value any, text string) (pairs []string) {
	list, several := value.([]any)
	if !several || !p.isList || p.isJSON {
		list = []any{text}
	}
	for _, item := range list {
		if text, ok := textOf(item); ok {
			pairs = append(pairs, url.QueryEscape(p.name)+"="+url.QueryEscape(text))
		}
	}
	return pairs
}
