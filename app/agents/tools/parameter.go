package tools

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"bobbin/app/core"
)

// parameter is a parameter of an operation. How values become text:
// https://spec.openapis.org/oas/v3.0.4.html#style-values
type parameter struct {
	argument string // its name for the model
	name, in string
	style    string
	explode  bool
}

// styleJSON is the style of a parameter whose value is a JSON text.
const styleJSON = "json"

// parameterStyles returns the styles that are supported, by the place of the parameter.
func parameterStyles() map[string][]string {
	return map[string][]string{
		openapi3.ParameterInPath:   {openapi3.SerializationSimple},
		openapi3.ParameterInHeader: {openapi3.SerializationSimple},
		openapi3.ParameterInQuery:  {openapi3.SerializationForm, openapi3.SerializationSpaceDelimited, openapi3.SerializationPipeDelimited, openapi3.SerializationDeepObject},
	}
}

// newParameter returns a parameter with its schema, or says why it is not supported.
func newParameter(p *openapi3.Parameter) (parameter, *openapi3.SchemaRef, error) {
	styles, known := parameterStyles()[p.In]
	switch {
	case p.Name == "":
		return parameter{}, nil, errors.New("it has no name")
	case !known:
		return parameter{}, nil, fmt.Errorf("it is in %q, which is not supported", core.Clip(p.In, 100))
	case p.In == openapi3.ParameterInHeader && !IsHeaderName(p.Name):
		return parameter{}, nil, errors.New("it is not the name of a header")
	}
	if len(p.Content) > 0 {
		media := p.Content.Get(jsonType)
		if media == nil {
			return parameter{}, nil, errors.New("its content is not JSON, which is not supported")
		}
		return parameter{name: p.Name, in: p.In, style: styleJSON}, media.Schema, nil
	}
	method, err := p.SerializationMethod()
	if err != nil || !slices.Contains(styles, method.Style) {
		return parameter{}, nil, fmt.Errorf("its style %q is not supported", core.Clip(p.Style, 100))
	}
	return parameter{name: p.Name, in: p.In, style: method.Style, explode: method.Explode}, p.Schema, nil
}

// pairs returns a value as pairs of the query, each name=value; none = the parameter is left out.
func (p parameter) pairs(value any) []string {
	name := escapeReserved(p.name)
	if p.style == openapi3.SerializationDeepObject {
		return deepPairs(name, value)
	}
	var delimiter string
	switch p.style {
	case openapi3.SerializationSpaceDelimited:
		delimiter = "%20"
	case openapi3.SerializationPipeDelimited:
		delimiter = "%7C"
	default:
		delimiter = ","
	}
	texts := p.texts(value, escapeReserved)
	_, isObject := value.(map[string]any)
	switch {
	case len(texts) == 0:
		return nil
	case !p.explode:
		return []string{name + "=" + strings.Join(texts, delimiter)}
	case isObject: // its keys are the names
		return texts
	}
	for i := range texts {
		texts[i] = name + "=" + texts[i]
	}
	return texts
}

// deepPairs returns a value in the style deepObject: name[key]=value. A list, which the specification
// leaves open, is name[]=item, as most servers read it.
func deepPairs(name string, value any) (pairs []string) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			pairs = append(pairs, deepPairs(name+"%5B"+escapeReserved(key)+"%5D", v[key])...)
		}
	case []any:
		for _, item := range v {
			pairs = append(pairs, deepPairs(name+"%5B%5D", item)...)
		}
	default:
		if text, ok := textOf(value); ok {
			pairs = append(pairs, name+"="+escapeReserved(text))
		}
	}
	return pairs
}

// text returns a value as the text of a path or a header; false = it is missing.
func (p parameter) text(value any, escape func(string) string) (string, bool) {
	texts := p.texts(value, escape)
	return strings.Join(texts, ","), len(texts) > 0
}

// texts returns the parts of a value, escaped: the items of a list, the keys and values of an object.
// Nothing is returned for null.
func (p parameter) texts(value any, escape func(string) string) (texts []string) {
	list, isList := value.([]any)
	object, isObject := value.(map[string]any)
	switch {
	case p.style == styleJSON && value != nil:
		text, _ := core.EncodeJSON(value) // it was decoded from JSON
		return []string{escape(string(text))}
	case isObject:
		for _, key := range slices.Sorted(maps.Keys(object)) {
			text, ok := textOf(object[key])
			switch {
			case ok && p.explode:
				texts = append(texts, escape(key)+"="+escape(text))
			case ok:
				texts = append(texts, escape(key), escape(text))
			}
		}
		return texts
	case !isList:
		list = []any{value}
	}
	for _, item := range list {
		if text, ok := textOf(item); ok {
			texts = append(texts, escape(text))
		}
	}
	return texts
}

// escapeReserved escapes all but the unreserved characters of RFC 3986.
func escapeReserved(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
