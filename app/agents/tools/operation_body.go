package tools

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"bobbin/app/core"
)

// Types of bodies.
const (
	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded"
)

// requestBody is how the body of an operation is sent.
type requestBody struct {
	contentType    string               // empty = there is no body
	propertyStyles map[string]parameter // the properties of a form that have a style
}

// newRequestBody returns how a body is sent and its schema, or what is not supported. JSON is preferred
// to a form. A body of another type has no content type.
func newRequestBody(content openapi3.Content) (requestBody, *openapi3.SchemaRef, error) {
	if media := content.Get(jsonType); media != nil {
		return requestBody{contentType: jsonType}, media.Schema, nil
	}
	for _, contentType := range slices.Sorted(maps.Keys(content)) {
		switch kind := mediaType(contentType); {
		case kind == jsonType, strings.HasSuffix(kind, "+json"):
			return requestBody{contentType: contentType}, content[contentType].Schema, nil
		case kind == formType:
			encoded, err := newPropertyStyles(content[contentType].Encoding)
			return requestBody{contentType, encoded}, content[contentType].Schema, err
		}
	}
	return requestBody{}, nil, nil
}

// newPropertyStyles returns the properties of a form that have a style.
func newPropertyStyles(encodings openapi3.Encodings) (map[string]parameter, error) {
	encoded := map[string]parameter{}
	for name, encoding := range encodings {
		if encoding.Style == "" && encoding.Explode == nil {
			continue
		}
		method := encoding.SerializationMethod()
		if !slices.Contains(parameterStyles()[openapi3.ParameterInQuery], method.Style) {
			return nil, fmt.Errorf("the style %q of %s in its body is not supported", core.Clip(method.Style, 100), core.Clip(name, 100))
		}
		encoded[name] = parameter{name: name, style: method.Style, explode: method.Explode}
	}
	return encoded, nil
}

// encode returns the body of a value. Errors are for the model.
func (b requestBody) encode(value any) ([]byte, error) {
	if mediaType(b.contentType) != formType {
		return core.EncodeJSON(value)
	}
	form, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the argument %q must be an object: it is sent as a form", bodyArgument)
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(form)) {
		p, ok := b.propertyStyles[name]
		if _, isObject := form[name].(map[string]any); !ok && isObject {
			p = parameter{name: name, style: styleJSON}
		} else if !ok {
			p = parameter{name: name, style: openapi3.SerializationForm, explode: true}
		}
		pairs = append(pairs, p.pairs(form[name])...)
	}
	return []byte(strings.Join(pairs, "&")), nil
}
