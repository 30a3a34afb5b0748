// Package openapi holds the OpenAPI document of the native HTTP API.
//
// The document is OpenAPI 3.1, made at the start of the table of operations (app/api/ops) and of
// what openapi.yaml and components.yaml add: schemas, and what is not JSON. tests/openapi checks it
// against the wire shapes and the answers of a running server.
package openapi

import (
	"crypto/sha256"
	_ "embed" // the document
	"encoding/hex"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

//go:embed openapi.yaml
var written string

//go:embed components.yaml
var components string

// Document is the description of the API. It is never changed, and safe for concurrent use.
type Document struct {
	JSON   []byte
	Groups []Group // the operations by their first tag, in the order of the document
	ETag   string  // changes with the document
}

// New returns the embedded document, which is made once per process. It panics if there is a fault in it.
//
//nolint:gochecknoglobals // built from constants, never changes
var New = sync.OnceValue(func() *Document {
	var node yaml.Node
	must(0, yaml.Unmarshal([]byte(written+"\n"+components), &node))
	tree := withOperations(valueOf(node.Content[0]).(object))
	groups := reader{tree}.operationGroups()
	allowNull(tree)
	data := append(must(json.Marshal(tree)), '\n')
	sum := sha256.Sum256(data)
	return &Document{JSON: data, Groups: groups, ETag: `"` + hex.EncodeToString(sum[:16]) + `"`}
})

// must returns the value, and panics if there is a fault in the embedded files.
func must[T any](value T, err error) T {
	if err != nil {
		panic("openapi: " + err.Error())
	}
	return value
}

// withOperations returns the document with the operations of the table, error responses, and the
// schemas of what they ask for and answer with.
func withOperations(doc object) object {
	all, written := &schemas{written: doc.in("components").in("schemas")}, doc.in("paths")
	table := slices.Clone(ops.All())
	for _, path := range written {
		for _, method := range path.value.(object) {
			route := strings.ToUpper(method.name) + " " + path.name
			if !slices.ContainsFunc(table, func(op ops.Operation) bool { return op.Route == route }) {
				table = append(table, ops.Operation{Route: route})
			}
		}
	}
	slices.SortStableFunc(table, func(a, b ops.Operation) int { return strings.Compare(a.Path(), b.Path()) })
	var paths object
	for _, op := range table {
		path, method := op.Path(), strings.ToLower(op.Method())
		if !strings.HasPrefix(path, "/internal/") {
			paths = paths.with(path, paths.in(path).with(method, all.describe(op, written.in(path).in(method))))
		}
	}
	events := all.written.in("Events")
	var data object // the schemas of the events' data, but for those that are written by hand
	for _, m := range events.get("properties").(object) {
		schema := m.value.(object)
		if schema.get("$ref") == nil && schema.get("type") == nil {
			of := all.of(reflect.TypeOf(core.DecodeEventData(core.EventType(m.name), json.RawMessage("{}"))), "")
			schema = append(object{{"allOf", []any{refTo("schemas", "EventHead"), of}}}, schema...)
		}
		data = append(data, member{m.name, schema})
	}
	shown := all.made.with("Events", events.with("properties", data))
	for _, m := range all.written {
		if shown.get(m.name) == nil {
			shown = append(shown, m)
		}
	}
	slices.SortFunc(shown, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return doc.with("paths", paths).with("components", doc.in("components").with("schemas", shown))
}

// describe returns the description of an operation: that of the table, and what is written by hand.
func (s *schemas) describe(op ops.Operation, written object) object {
	out, params, responses := object{}, []any{}, errorResponses(op, written)
	keyed := (op.Method() == http.MethodPost || op.Method() == http.MethodPatch) && op.Scope != core.CanDelete && op.Scope != core.CanExport && op.Scope != core.CanRead
	if op.In != nil {
		ways := []any{} // in which the caller shows the scope
		for _, scheme := range []string{"bearer", "header", "jwt"} {
			if scheme != "jwt" || !op.OwnersOnly {
				ways = append(ways, object{{scheme, []any{op.Scope.String()}}})
			}
		}
		out = object{{"operationId", op.ID}, {"security", append(ways, object{})}}
		for _, f := range ops.Fields(op.In) {
			if f.Place != ops.InBody {
				params = append(params, s.parameter(f))
			}
		}
		if body := s.requestBody(op); body != nil {
			out = append(out, member{"requestBody", body})
		}
		answers := s.answers(op, keyed)
		if op.Tag != "" {
			out = append(out, member{"tags", []any{op.Tag}}, member{"summary", op.Summary})
			responses = append(responses, answers...)
		}
	}
	if op.Description != "" {
		out = append(out, member{"description", op.Description})
	}
	if keyed {
		params = append(params, refTo("parameters", "IdempotencyKey"))
	}
	for _, m := range written {
		switch m.name {
		case "parameters":
			params = append(params, m.value.([]any)...)
		case "responses":
			responses = append(responses, m.value.(object)...)
		case "requestBody":
			body := m.value.(object)
			out = out.with(m.name, body.with("content", append(out.in(m.name).in("content"), body.in("content")...)))
		default:
			out = out.with(m.name, m.value)
		}
	}
	return append(out, member{"parameters", params}, member{"responses", responses})
}

func refTo(kind, name string) object { return object{{"$ref", "#/components/" + kind + "/" + name}} }

// errorResponses returns the errors that the operation may answer with. Lists are always there.
func errorResponses(op ops.Operation, written object) object {
	out := object{{"413", "TooLarge"}, {"500", "Internal"}, {"503", "Unavailable"}}
	if len(listOf(written, "security")) != 1 { // anyone may call it
		out = append(out, object{{"401", "Unauthorized"}, {"403", "Forbidden"}, {"422", "Invalid"}, {"429", "RateLimited"}, {"504", "Timeout"}}...)
	}
	one := strings.Contains(op.Path(), "{")
	if op.In != nil {
		_, inSession := op.In.FieldByName("SessionID")
		_, isList := op.Out.FieldByName("NextCursor")
		changes := op.Method() != http.MethodGet
		one = one || inSession || !isList || changes
		if changes {
			out = append(out, object{{"400", "Malformed"}, {"408", "BodyTimeout"}, {"409", "Conflict"}, {"415", "MediaType"}}...)
		}
	}
	if one {
		out = append(out, member{"404", "NotFound"})
	}
	if op.CallsModel {
		out = append(out, member{"502", "ModelFailed"})
	}
	for i := range out {
		out[i].value = refTo("responses", out[i].value.(string))
	}
	return out
}

// answers returns the good answers of the operation.
func (s *schemas) answers(op ops.Operation, keyed bool) object {
	if op.Out == reflect.TypeFor[ops.Nothing]() {
		return object{{"204", object{{"description", op.Returns}}}}
	}
	var out, headers object
	if op.Location != "" {
		headers = append(headers, member{"Location", refTo("headers", "Location")})
	}
	if keyed {
		headers = append(headers, member{"Idempotency-Replayed", refTo("headers", "Replayed")})
	}
	schema, status := s.of(op.Out, ""), "200"
	if op.Created {
		status = "201"
	}
	for _, a := range [][2]string{{status, op.Returns}, {"202", op.Accepted}} {
		if a[1] == "" {
			continue
		}
		answer := object{{"description", a[1]}, {"content", object{{"application/json", object{{"schema", schema}}}}}}
		if headers != nil {
			answer = answer.with("headers", headers)
		}
		out = append(out, member{a[0], answer})
	}
	return out
}

// requestBody returns the JSON body of the operation, nil if it has none.
func (s *schemas) requestBody(op ops.Operation) object {
	var members object
	var required []any
	for _, f := range ops.Fields(op.In) {
		if f.Place == ops.InBody {
			members = append(members, member{f.Name, s.requested(f)})
			if f.Tag.Get("required") != "" {
				required = append(required, f.Name)
			}
		}
	}
	if members == nil && op.Tag == "" || op.Method() == http.MethodGet || op.Method() == http.MethodDelete {
		return nil
	}
	schema := object{{"type", "object"}, {"additionalProperties", false}, {"properties", members}}
	if required != nil {
		schema = append(schema, member{"required", required})
	}
	media := object{{"schema", schema}}
	if op.Example != "" {
		media = append(media, member{"example", json.RawMessage(op.Example)})
	}
	return object{{"required", required != nil}, {"content", object{{"application/json", media}}}}
}

func (s *schemas) parameter(f ops.Field) object {
	out := object{{"name", f.Name}, {"in", string(f.Place)}}
	if f.Place == ops.InPath || f.Tag.Get("required") != "" {
		out = append(out, member{"required", true})
	}
	var kept object
	for _, m := range s.requested(f) {
		switch m.name {
		case "description":
			out = append(out, m)
		case "examples":
			out = append(out, member{"example", m.value.([]any)[0]})
		default:
			kept = append(kept, m)
		}
	}
	return append(out, member{"schema", kept})
}

// allowNull changes the document so that optional members of JSON bodies may be null, which equals
// leaving them out.
func allowNull(doc object) {
	for _, path := range doc.in("paths") {
		for _, operation := range path.value.(object) {
			schema := operation.value.(object).in("requestBody").in("content").in("application/json").in("schema")
			properties := schema.in("properties")
			for i, p := range properties {
				if !slices.Contains(listOf(schema, "required"), any(p.name)) {
					properties[i].value = withNull(p.value.(object))
				}
			}
		}
	}
}

// withNull returns a schema that also allows null.
func withNull(schema object) object {
	kind := schema.get("type")
	if kind == nil {
		return object{{"anyOf", []any{schema, object{{"type", "null"}}}}}
	}
	if values := listOf(schema, "enum"); values != nil {
		schema = schema.with("enum", append(values, nil))
	}
	return schema.with("type", []any{kind, "null"})
}
