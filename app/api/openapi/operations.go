package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// withOperations returns the document with the operations of the table and with error responses.
func withOperations(doc object) (object, error) {
	written, _ := doc.get("paths").(object)
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
		if strings.HasPrefix(op.Path(), "/internal/") {
			continue
		}
		method := strings.ToLower(op.Method())
		path, _ := written.get(op.Path()).(object)
		extra, _ := path.get(method).(object)
		described, err := reader{doc}.describe(op, extra)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op.ID, err)
		}
		item, _ := paths.get(op.Path()).(object)
		paths = paths.with(op.Path(), item.with(method, described))
	}
	return doc.with("paths", paths), nil
}

// describe returns the description of an operation: that of the table, and what is written by hand.
func (r reader) describe(op ops.Operation, written object) (object, error) {
	out := object{}
	var params []any
	var members, required object
	if op.In != nil {
		out = object{{"operationId", op.ID}, {"security", securityOf(op)}}
		for _, f := range ops.Fields(op.In) {
			if f.Place == ops.InBody {
				members = append(members, member{f.Name, r.fieldSchema(f)})
				if f.Tag.Get("required") != "" {
					required = append(required, member{name: f.Name})
				}
				continue
			}
			params = append(params, r.parameter(f))
		}
	}
	changes := op.Method() != http.MethodGet && op.Method() != http.MethodHead
	keyed := (op.Method() == http.MethodPost || op.Method() == http.MethodPatch) && op.Scope != core.CanDelete && op.Scope != core.CanExport
	if keyed {
		params = append(params, refTo("parameters", "IdempotencyKey"))
	}
	responses := errorResponses(op, written)
	if op.Tag != "" {
		out = append(out, member{"tags", []any{op.Tag}}, member{"summary", op.Summary})
		if op.Description != "" {
			out = append(out, member{"description", op.Description})
		}
		if changes && op.Method() != http.MethodDelete {
			body, err := requestBody(op, members, required)
			if err != nil {
				return nil, err
			}
			out = append(out, member{"requestBody", body})
		}
		responses = append(responses, answers(op, keyed)...)
	}
	for _, m := range written {
		switch m.name {
		case "parameters":
			params = append(params, m.value.([]any)...)
		case "responses":
			responses = append(responses, m.value.(object)...)
		default:
			out = out.with(m.name, m.value)
		}
	}
	if len(params) > 0 {
		out = append(out, member{"parameters", params})
	}
	return append(out, member{"responses", responses}), nil
}

func refTo(kind, name string) object { return object{{"$ref", "#/components/" + kind + "/" + name}} }

// securityOf returns the ways in which the operation's caller shows the scope.
func securityOf(op ops.Operation) []any {
	ways := []any{}
	for _, scheme := range []string{"bearer", "header", "jwt"} {
		if scheme != "jwt" || !op.OwnersOnly {
			ways = append(ways, object{{scheme, []any{op.Scope.String()}}})
		}
	}
	return append(ways, object{})
}

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
func answers(op ops.Operation, keyed bool) object {
	if op.Out == reflect.TypeFor[ops.Nothing]() {
		return object{{"204", object{{"description", op.Returns}}}}
	}
	var out, headers object
	if op.HasLocation {
		headers = append(headers, member{"Location", refTo("headers", "Location")})
	}
	if keyed {
		headers = append(headers, member{"Idempotency-Replayed", refTo("headers", "Replayed")})
	}
	status := "200"
	if op.Created {
		status = "201"
	}
	for _, a := range [][2]string{{status, op.Returns}, {"202", op.Accepted}} {
		if a[1] == "" {
			continue
		}
		answer := object{{"description", a[1]}, {"content", object{{"application/json", object{{"schema", refTo("schemas", schemaName(op.Out))}}}}}}
		if headers != nil {
			answer = answer.with("headers", headers)
		}
		out = append(out, member{a[0], answer})
	}
	return out
}

// requestBody returns the body of the operation with the members.
func requestBody(op ops.Operation, members, required object) (object, error) {
	schema := object{{"type", "object"}, {"additionalProperties", false}}
	if len(members) > 0 {
		schema = schema.with("properties", members)
	}
	body := object{}
	if len(required) > 0 {
		names := []any{}
		for _, m := range required {
			names = append(names, m.name)
		}
		schema, body = schema.with("required", names), object{{"required", true}}
	}
	media := object{{"schema", schema}}
	if op.Example != "" {
		example, err := parseYAML(op.Example) // JSON is YAML, too
		if err != nil {
			return nil, err
		}
		media = media.with("example", example)
	}
	return body.with("content", object{{"application/json", media}}), nil
}

// parameter returns the parameter of a value in the path or the query.
func (r reader) parameter(f ops.Field) object {
	out := object{{"name", f.Name}, {"in", string(f.Place)}}
	if f.Place == ops.InPath || f.Tag.Get("required") != "" {
		out = append(out, member{"required", true})
	}
	schema := r.fieldSchema(f)
	var kept object
	for _, m := range schema {
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

// quoted is a word in quotes, of a text in a tag.
var quoted = regexp.MustCompile(`'([^' ]+)'`)

// fieldSchema returns the schema of a value of a request.
func (r reader) fieldSchema(f ops.Field) object {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	kind, out := "", object(nil)
	switch {
	case f.Tag.Get("schema") != "" && f.Place == ops.InBody:
		out = refTo("schemas", f.Tag.Get("schema"))
	case f.Enum() != nil, f.Tag.Get("format") != "", t == reflect.TypeFor[json.RawMessage]():
		kind = "string"
	case r.lookupRef("#/components/schemas/"+t.Name()) != nil:
		out = refTo("schemas", t.Name())
	case t.Kind() == reflect.String:
		kind = "string"
	case t.Kind() == reflect.Bool:
		kind = "boolean"
	case t.Kind() == reflect.Float32:
		kind = "number"
	default:
		kind = "integer"
	}
	if kind != "" {
		out = object{{"type", kind}}
	}
	if f.Noun != "" && kind == "string" {
		out = append(out, member{"format", "uuid"})
	}
	if t.Kind() == reflect.Int64 || t.Kind() == reflect.Int32 {
		out = append(out, member{"format", t.Kind().String()})
	}
	if values := f.Enum(); values != nil {
		list := []any{}
		for _, v := range values {
			list = append(list, v)
		}
		out = append(out, member{"enum", list})
	}
	limits := [2]string{"minimum", "maximum"}
	if kind == "string" {
		limits = [2]string{"minLength", "maxLength"}
	}
	for _, m := range [][2]string{{"min", limits[0]}, {"max", limits[1]}, {"default", "default"}, {"example", "examples"}, {"doc", "description"}} {
		text, ok := f.Tag.Lookup(m[0])
		if m[0] == "doc" {
			text = quoted.ReplaceAllString(text, "`$1`")
		}
		var value any = text
		if m[0] == "min" || m[0] == "max" || kind != "" && kind != "string" && m[0] != "doc" {
			value = json.RawMessage(text)
		}
		if m[0] == "example" {
			value = []any{value}
		}
		if ok {
			out = append(out, member{m[1], value})
		}
	}
	return out
}

// schemaName returns the name of the schema of an answer.
func schemaName(t reflect.Type) string {
	name := t.Name()
	if item, ok := strings.CutPrefix(name, "Page["); ok {
		return nameOf(item[strings.LastIndex(item, ".")+1:len(item)-1]) + "Page"
	}
	return nameOf(name)
}

func nameOf(name string) string {
	if other := map[string]string{"AgentDetail": "Agent", "MessageLocation": "MessageWhere", "PromptView": "Prompt"}[name]; other != "" {
		return other
	}
	return name
}
