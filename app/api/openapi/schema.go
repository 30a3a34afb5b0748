package openapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// reader reads the document for the page.
type reader struct{ doc object }

// field is a parameter, or a member of a schema.
type field struct {
	Name, Place, Type, Ref, Limits, Description string
	Required                                    bool
}

// shape is a schema with a name.
type shape struct {
	Name, Type, Limits, Description string
	Fields                          []field
	Example                         string
}

func text(o object, name string) string {
	s, _ := o.get(name).(string)
	return s
}

func list(o object, name string) []any {
	l, _ := o.get(name).([]any)
	return slices.Clone(l)
}

// at returns what a $ref names.
func (r reader) at(ref string) any {
	var value any = r.doc
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		o, _ := value.(object)
		value = o.get(strings.ReplaceAll(name, "~1", "/"))
	}
	return value
}

// resolve returns the object that a value is or refers to, nil if it is none.
func (r reader) resolve(value any) object {
	o, _ := value.(object)
	if ref := text(o, "$ref"); ref != "" {
		return r.resolve(r.at(ref))
	}
	return o
}

// refName returns the name of the schema that a schema refers to, "" if it does not.
func refName(schema object) string {
	name, ok := strings.CutPrefix(text(schema, "$ref"), "#/components/schemas/")
	if !ok {
		return ""
	}
	return name
}

func (r reader) shape(name string, value any) shape {
	schema, _ := value.(object)
	s := shape{Name: name, Type: r.words(schema), Limits: limits(schema), Description: text(schema, "description"), Fields: r.fields("", schema)}
	if len(s.Fields) > 0 {
		s.Example = pretty(r.example(schema, 0))
	}
	return s
}

// fields returns the members of a schema, those of objects within it too.
func (r reader) fields(prefix string, schema object) []field {
	var out []field
	for _, piece := range list(schema, "allOf") {
		out = append(out, r.fields(prefix, r.resolve(piece))...)
	}
	required := list(schema, "required")
	properties, _ := schema.get("properties").(object)
	for _, m := range properties {
		inner, _ := m.value.(object)
		f := r.field(prefix+m.name, inner)
		f.Required = slices.Contains(required, any(m.name))
		out = append(out, f)
		below := prefix + m.name + "."
		if items, ok := inner.get("items").(object); ok {
			inner, below = items, prefix+m.name+"[]."
		}
		if refName(inner) == "" {
			out = append(out, r.fields(below, inner)...)
		}
	}
	return out
}

func (r reader) field(name string, schema object) field {
	f := field{Name: name, Type: r.words(schema), Ref: refName(schema), Description: text(schema, "description"), Limits: limits(r.resolve(schema))}
	if items, ok := schema.get("items").(object); ok && f.Ref == "" {
		f.Ref = refName(items)
	}
	if f.Description == "" && f.Ref != "" {
		f.Description = text(r.resolve(schema), "description")
	}
	return f
}

// words says what a value of the schema is.
func (r reader) words(schema object) string {
	if name := refName(schema); name != "" {
		return name
	}
	var choices []string
	for _, piece := range append(list(schema, "anyOf"), list(schema, "oneOf")...) {
		choices = append(choices, r.words(piece.(object)))
	}
	if len(choices) > 0 {
		return strings.Join(choices, " or ")
	}
	switch kind := schema.get("type").(type) {
	case string:
		if items, ok := schema.get("items").(object); ok {
			return "list of " + r.words(items)
		}
		if format := text(schema, "format"); format != "" {
			return kind + " (" + format + ")"
		}
		return kind
	case []any:
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(kind), "[]"), " ", " or ")
	default:
		return "any"
	}
}

// limits says what bounds a value.
func limits(schema object) string {
	var words []string
	for _, m := range schema {
		switch m.name {
		case "const":
			words = append(words, "always "+fmt.Sprint(m.value))
		case "enum":
			words = append(words, "one of "+strings.Trim(fmt.Sprint(m.value), "[]"))
		case "default":
			words = append(words, "default "+fmt.Sprint(m.value))
		case "minimum":
			words = append(words, "from "+fmt.Sprint(m.value))
		case "maximum":
			words = append(words, "to "+fmt.Sprint(m.value))
		case "maxLength":
			words = append(words, "at most "+fmt.Sprint(m.value)+" bytes")
		case "maxItems":
			words = append(words, "at most "+fmt.Sprint(m.value)+" entries")
		}
	}
	return strings.Join(words, ", ")
}

// deepest is how far examples go into what is nested.
const deepest = 3

// example returns a value of the schema.
func (r reader) example(schema object, depth int) any {
	if examples := list(schema, "examples"); len(examples) > 0 {
		return examples[0]
	}
	if choices := append(list(schema, "anyOf"), list(schema, "oneOf")...); len(choices) > 0 {
		return r.example(choices[0].(object), depth)
	}
	if refName(schema) != "" {
		return r.example(r.resolve(schema), depth)
	}
	for _, name := range []string{"const", "default"} {
		if value := schema.get(name); value != nil {
			return value
		}
	}
	if values := list(schema, "enum"); len(values) > 0 {
		return values[0]
	}
	return r.exampleOfType(schema, depth)
}

func (r reader) exampleOfType(schema object, depth int) any {
	kind := schema.get("type")
	if kinds, ok := kind.([]any); ok {
		kind = kinds[len(kinds)-1]
	}
	switch kind {
	case "object", nil:
		return r.exampleObject(schema, depth)
	case "array":
		items, _ := schema.get("items").(object)
		if depth >= deepest || items == nil {
			return []any{}
		}
		return []any{r.example(items, depth+1)}
	case "integer", "number":
		if low := schema.get("minimum"); low != nil {
			return low
		}
		return 0
	case "boolean":
		return false
	case "null":
		return nil
	default:
		return "…"
	}
}

func (r reader) exampleObject(schema object, depth int) any {
	out := object{}
	for _, piece := range list(schema, "allOf") {
		if inner, ok := r.example(piece.(object), depth).(object); ok {
			out = append(out, inner...)
		}
	}
	properties, _ := schema.get("properties").(object)
	for _, m := range properties {
		if depth < deepest {
			out = append(out, member{m.name, r.example(m.value.(object), depth+1)})
		}
	}
	return out
}

// pretty returns an example as it is shown.
func pretty(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	if value == nil {
		return ""
	}
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return ""
	}
	return string(data)
}

// sortAnswers puts answers in the order of their status.
func sortAnswers(answers []content) {
	slices.SortStableFunc(answers, func(a, b content) int { return strings.Compare(a.Status, b.Status) })
}
