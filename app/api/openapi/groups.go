package openapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Group holds the operations of a tag.
type Group struct {
	Name       string
	Operations []Operation
}

// Operation is one operation as the command line shows and calls it.
type Operation struct {
	ID, Method, Path, Summary, Description string
	Inputs                                 []Field // the parameters, and the members of a JSON body, whose place is body
	Media                                  string  // of the body; empty = it has none
}

// operationGroups returns the operations by their first tag, in the order of the tags.
func (r reader) operationGroups() []Group {
	var groups []Group
	index := map[string]int{}
	for _, t := range listOf(r.doc, "tags") {
		name := stringOf(t.(object), "name")
		index[name] = len(groups)
		groups = append(groups, Group{Name: name})
	}
	for _, path := range r.doc.in("paths") {
		for _, m := range path.value.(object) {
			op := r.readOperation(path.name, m.name, m.value.(object))
			tag := fmt.Sprint(listOf(m.value.(object), "tags")[0])
			groups[index[tag]].Operations = append(groups[index[tag]].Operations, op)
		}
	}
	return groups
}

func (r reader) readOperation(path, method string, raw object) Operation {
	op := Operation{ID: stringOf(raw, "operationId"), Method: strings.ToUpper(method), Path: path, Summary: stringOf(raw, "summary"), Description: stringOf(raw, "description")}
	for _, param := range listOf(raw, "parameters") {
		p := r.resolveRef(param)
		f := r.readField(stringOf(p, "name"), p.in("schema"))
		f.Place, f.Description = stringOf(p, "in"), stringOf(p, "description")
		f.Required, _ = p.get("required").(bool)
		op.Inputs = append(op.Inputs, f)
	}
	content := raw.in("requestBody").in("content")
	if len(content) > 0 {
		op.Media = content[0].name
	}
	op.Inputs = append(op.Inputs, r.readMembers(r.resolveRef(content.in("application/json").get("schema")))...)
	return op
}

// reader reads the document.
type reader struct{ doc object }

// Field is a parameter, or a member of a body.
type Field struct {
	Name, Place, Type, Limits, Description string
	Required, IsText                       bool
}

func stringOf(o object, name string) string {
	s, _ := o.get(name).(string)
	return s
}

func listOf(o object, name string) []any {
	l, _ := o.get(name).([]any)
	return slices.Clone(l)
}

// resolveRef returns the object that a value is or refers to, nil if it is not an object.
func (r reader) resolveRef(value any) object {
	o, _ := value.(object)
	ref := stringOf(o, "$ref")
	if ref == "" {
		return o
	}
	target := r.doc
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		target = target.in(strings.ReplaceAll(name, "~1", "/"))
	}
	return r.resolveRef(target)
}

func (r reader) readMembers(schema object) []Field {
	var out []Field
	for _, piece := range listOf(schema, "allOf") {
		out = append(out, r.readMembers(r.resolveRef(piece))...)
	}
	for _, m := range schema.in("properties") {
		f := r.readField(m.name, m.value.(object))
		f.Place, f.Required = "body", slices.Contains(listOf(schema, "required"), any(m.name))
		out = append(out, f)
	}
	return out
}

func (r reader) readField(name string, schema object) Field {
	named := r.resolveRef(schema)
	return Field{
		Name: name, Type: r.typeText(schema), Limits: limitsText(named), IsText: stringOf(named, "type") == "string",
		Description: cmp.Or(stringOf(schema, "description"), stringOf(named, "description")),
	}
}

func (r reader) typeText(schema object) string {
	if name := strings.TrimPrefix(stringOf(schema, "$ref"), "#/components/schemas/"); name != "" {
		return name
	}
	var choices []string
	for _, piece := range append(listOf(schema, "anyOf"), listOf(schema, "oneOf")...) {
		choices = append(choices, r.typeText(piece.(object)))
	}
	if len(choices) > 0 {
		return strings.Join(choices, " or ")
	}
	switch kind := schema.get("type").(type) {
	case string:
		if items, ok := schema.get("items").(object); ok {
			return "list of " + r.typeText(items)
		}
		if format := stringOf(schema, "format"); format != "" {
			return kind + " (" + format + ")"
		}
		return kind
	case []any:
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(kind), "[]"), " ", " or ")
	default:
		return "any"
	}
}

func limitsText(schema object) string {
	formats := map[string]string{
		"const": "always %v", "enum": "one of %v", "default": "default %v", "minimum": "from %v", "maximum": "to %v", "maxLength": "at most %v bytes", "maxItems": "at most %v entries",
	}
	var words []string
	for _, m := range schema {
		value := fmt.Sprint(m.value)
		if m.name == "enum" {
			value = strings.Trim(value, "[]")
		}
		if format := formats[m.name]; format != "" {
			words = append(words, fmt.Sprintf(format, value))
		}
	}
	return strings.Join(words, ", ")
}
