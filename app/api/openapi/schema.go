package openapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// reader reads the document.
type reader struct{ doc object }

// Field is a parameter or a member of a schema.
type Field struct {
	Name, Place, Type, Ref, Limits, Description string
	Required, IsText                            bool
}

// shape is a named schema.
type shape struct {
	Field
	Fields []Field
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

// refName returns the name of the schema that a schema refers to, "" if it is not a reference.
func refName(schema object) string {
	name, ok := strings.CutPrefix(stringOf(schema, "$ref"), "#/components/schemas/")
	if !ok {
		return ""
	}
	return name
}

// readFields returns the members of a schema, including those of nested objects.
func (r reader) readFields(prefix string, schema object) []Field {
	var out []Field
	for _, piece := range listOf(schema, "allOf") {
		out = append(out, r.readFields(prefix, r.resolveRef(piece))...)
	}
	required := listOf(schema, "required")
	for _, m := range schema.in("properties") {
		inner := m.value.(object)
		f := r.readField(prefix+m.name, inner)
		f.Required = slices.Contains(required, any(m.name))
		out = append(out, f)
		below := prefix + m.name + "."
		if items, ok := inner.get("items").(object); ok {
			inner, below = items, prefix+m.name+"[]."
		}
		if refName(inner) == "" {
			out = append(out, r.readFields(below, inner)...)
		}
	}
	return out
}

func (r reader) readField(name string, schema object) Field {
	f := Field{Name: name, Type: r.typeText(schema), Ref: refName(schema), Description: stringOf(schema, "description"), Limits: limitsText(r.resolveRef(schema))}
	f.IsText = stringOf(r.resolveRef(schema), "type") == "string"
	if items, ok := schema.get("items").(object); ok && f.Ref == "" {
		f.Ref = refName(items)
	}
	if f.Description == "" && f.Ref != "" {
		f.Description = stringOf(r.resolveRef(schema), "description")
	}
	return f
}

// typeText describes the type of a schema.
func (r reader) typeText(schema object) string {
	if name := refName(schema); name != "" {
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

// limitsText describes the limits of a schema.
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

// formatExample returns an example as text.
func formatExample(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return string(must(json.MarshalIndent(v, "", "  ")))
	}
}
