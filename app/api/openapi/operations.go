package openapi

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// withOperations returns the document with the operations of the table, error responses, and the
// schemas of what they ask for and answer with.
func withOperations(doc object) (object, error) {
	components, _ := doc.get("components").(object)
	all := &schemas{}
	all.written, _ = components.get("schemas").(object)
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
		described, err := all.describe(op, extra)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op.ID, err)
		}
		item, _ := paths.get(op.Path()).(object)
		paths = paths.with(op.Path(), item.with(method, described))
	}
	all.addEvents()
	return doc.with("paths", paths).with("components", components.with("schemas", all.sorted())), nil
}

// describe returns the description of an operation: that of the table, and what is written by hand.
func (s *schemas) describe(op ops.Operation, written object) (object, error) {
	out := object{}
	var params []any
	keyed := (op.Method() == http.MethodPost || op.Method() == http.MethodPatch) && op.Scope != core.CanDelete && op.Scope != core.CanExport
	responses := errorResponses(op, written)
	if op.In != nil {
		out = object{{"operationId", op.ID}, {"security", securityOf(op)}}
		if op.Out != reflect.TypeFor[ops.Nothing]() {
			s.of(op.Out, "")
		}
		for _, f := range ops.Fields(op.In) {
			if f.Place != ops.InBody {
				params = append(params, s.parameter(f))
			}
		}
		body, err := s.requestBody(op)
		if err != nil {
			return nil, err
		}
		if body != nil {
			out = append(out, member{"requestBody", body})
		}
	}
	if keyed {
		params = append(params, refTo("parameters", "IdempotencyKey"))
	}
	if op.Tag != "" {
		out = append(out, member{"tags", []any{op.Tag}}, member{"summary", op.Summary})
		if op.Description != "" {
			out = append(out, member{"description", op.Description})
		}
		responses = append(responses, s.answers(op, keyed)...)
	}
	for _, m := range written {
		switch m.name {
		case "parameters":
			params = append(params, m.value.([]any)...)
		case "responses":
			responses = append(responses, m.value.(object)...)
		case "requestBody":
			made, _ := out.get(m.name).(object)
			content, _ := made.get("content").(object)
			body := m.value.(object)
			out = out.with(m.name, body.with("content", append(content, body.get("content").(object)...)))
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
func (s *schemas) answers(op ops.Operation, keyed bool) object {
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
		answer := object{{"description", a[1]}, {"content", object{{"application/json", object{{"schema", s.of(op.Out, "")}}}}}}
		if headers != nil {
			answer = answer.with("headers", headers)
		}
		out = append(out, member{a[0], answer})
	}
	return out
}

// requestBody returns the JSON body of the operation, nil if it has none.
func (s *schemas) requestBody(op ops.Operation) (object, error) {
	var members object
	var required []any
	for _, f := range ops.Fields(op.In) {
		if f.Place != ops.InBody {
			continue
		}
		members = append(members, member{f.Name, s.requested(f)})
		if f.Tag.Get("required") != "" {
			required = append(required, f.Name)
		}
	}
	if members == nil && op.Tag == "" || op.Method() == http.MethodGet || op.Method() == http.MethodDelete {
		return nil, nil
	}
	schema := object{{"type", "object"}, {"additionalProperties", false}, {"properties", members}}
	body := object{}
	if required != nil {
		schema, body = append(schema, member{"required", required}), object{{"required", true}}
	}
	media := object{{"schema", schema}}
	if op.Example != "" {
		example, err := parseYAML(op.Example) // JSON is YAML, too
		if err != nil {
			return nil, err
		}
		media = append(media, member{"example", example})
	}
	return append(body, member{"content", object{{"application/json", media}}}), nil
}

// parameter returns the parameter of a value in the path or the query.
func (s *schemas) parameter(f ops.Field) object {
	out := object{{"name", f.Name}, {"in", string(f.Place)}}
	if f.Place == ops.InPath || f.Tag.Get("required") != "" {
		out = append(out, member{"required", true})
	}
	schema := s.requested(f)
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
