package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"bobbin/app/api/ops"
)

// schemas are the schemas of the document's components: those written by hand, and those of Go types.
type schemas struct{ written, made object }

// of returns the schema of a value of the type whose field has the tags.
func (s *schemas) of(t reflect.Type, tag reflect.StructTag) object {
	if t.Kind() == reflect.Pointer {
		return s.of(t.Elem(), tag)
	}
	return withTags(s.ofType(t, tag), tag)
}

func (s *schemas) ofType(t reflect.Type, tag reflect.StructTag) object {
	written := s.written.in(t.Name())
	switch {
	case tag.Get("schema") != "":
		return refTo("schemas", tag.Get("schema"))
	case tag.Get("enum") != "", tag.Get("word") != "", tag.Get("format") != "":
		return object{{"type", "string"}}
	case t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Interface:
		return object{}
	case t == reflect.TypeFor[time.Time](), written.get("type") != nil, written.get("oneOf") != nil:
		return refTo("schemas", t.Name())
	}
	switch t.Kind() {
	case reflect.Struct:
		return refTo("schemas", s.component(t))
	case reflect.Slice:
		return object{{"type", "array"}, {"items", s.of(t.Elem(), "")}}
	case reflect.Map:
		return object{{"type", "object"}, {"additionalProperties", s.of(t.Elem(), "")}}
	case reflect.String:
		if strings.HasSuffix(t.Name(), "ID") {
			return refTo("schemas", "ID")
		}
		return object{{"type", "string"}}
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Float32, reflect.Float64:
		return object{{"type", "number"}}
	default:
		return object{{"type", "integer"}}
	}
}

// component returns the name of the schema of a struct, which it makes if there is none.
func (s *schemas) component(t reflect.Type) string {
	name := t.Name()
	if item, ok := strings.CutPrefix(name, "Page["); ok {
		name = strings.TrimSuffix(item[strings.LastIndex(item, ".")+1:], "]") + "Page"
	}
	if s.made.get(name) != nil {
		return name
	}
	s.made = s.made.with(name, true) // types may refer to themselves
	var members object
	var required []any
	for _, f := range reflect.VisibleFields(t) {
		known, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if known == "" || known == "-" || f.Tag.Get("schema") == "-" {
			continue
		}
		members = append(members, member{known, s.of(f.Type, f.Tag)})
		if !strings.HasPrefix(options, "omit") {
			required = append(required, known)
		}
	}
	schema := object{{"type", "object"}, {"properties", members}}
	if required != nil {
		schema = append(schema, member{"required", required})
	}
	s.made = s.made.with(name, append(schema, s.written.in(name)...))
	return name
}

// requested returns the schema of a value of a request. IDs in queries and bodies may be of something
// that does not exist, and of no form.
func (s *schemas) requested(f ops.Field) object {
	if f.Place != ops.InPath && f.Type.Kind() == reflect.String && strings.HasSuffix(f.Type.Name(), "ID") {
		return withTags(object{{"type", "string"}}, f.Tag)
	}
	return s.of(f.Type, f.Tag)
}

// quoted is a word in quotes, of a text in a tag.
var quoted = regexp.MustCompile(`'([^' ]+)'`)

// withTags returns the schema with what the tags of a field say.
func withTags(schema object, tag reflect.StructTag) object {
	kind := stringOf(schema, "type")
	if words := (ops.Field{Tag: tag}).Enum(); words != nil {
		list := []any{}
		for _, word := range words {
			list = append(list, word)
		}
		schema = append(schema, member{"enum", list})
	}
	limits := map[string][2]string{"string": {"minLength", "maxLength"}, "array": {"minItems", "maxItems"}}[kind]
	if limits[0] == "" {
		limits = [2]string{"minimum", "maximum"}
	}
	for _, m := range [][2]string{{"min", limits[0]}, {"max", limits[1]}, {"pattern", "pattern"}, {"default", "default"}, {"example", "examples"}, {"doc", "description"}} {
		text, ok := tag.Lookup(m[0])
		if !ok {
			continue
		}
		var value any = text
		switch {
		case m[0] == "doc":
			value = quoted.ReplaceAllString(text, "`$1`")
		case kind == "boolean":
			value = text == "true"
		case m[0] == "min", m[0] == "max", kind == "integer", kind == "number":
			value = json.Number(text)
		}
		if m[0] == "example" {
			value = []any{value}
		}
		schema = append(schema, member{m[1], value})
	}
	return schema
}

// object is a JSON object that keeps the order of its members. Values are objects, []any, and what
// JSON has besides them.
type object []member

type member struct {
	name  string
	value any
}

// get returns the member's value, nil if there is none.
func (o object) get(name string) any {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// in returns the object that is the member, nil if there is none.
func (o object) in(name string) object {
	inner, _ := o.get(name).(object)
	return inner
}

// with returns the object with the member, in place of the one of its name.
func (o object) with(name string, value any) object {
	out := slices.Clone(o)
	if i := slices.IndexFunc(o, func(m member) bool { return m.name == name }); i >= 0 {
		out[i].value = value
		return out
	}
	return append(out, member{name, value})
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	out := []byte("{")
	for i, m := range o {
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, "%q:%s", m.name, value)
	}
	return append(out, '}'), nil
}

func valueOf(n *yaml.Node) any {
	switch n.Kind {
	case yaml.AliasNode:
		return valueOf(n.Alias)
	case yaml.MappingNode:
		var out object
		for i := 0; i < len(n.Content); i += 2 {
			out = append(out, member{n.Content[i].Value, valueOf(n.Content[i+1])})
		}
		return out
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			list = append(list, valueOf(item))
		}
		return list
	default:
		var value any
		must(0, n.Decode(&value))
		return value
	}
}
