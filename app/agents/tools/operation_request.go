package tools

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"

	"bobbin/app/core"
)

// operationRequest is what the requests of an operation are made of.
type operationRequest struct {
	method, address string // with {parameter}
	parameters      []parameter
	body            requestBody
}

// newRequest returns the request with the arguments. Errors are for the model.
func (r operationRequest) newRequest(arguments map[string]any) (webRequest, error) {
	request := webRequest{method: r.method, headers: map[string]string{}}
	inPath, pairs := map[string]string{}, []string{}
	for _, p := range r.parameters {
		value := arguments[p.argument]
		switch p.in {
		case openapi3.ParameterInPath:
			text, _ := p.text(value, escapeReserved)
			if text == "" {
				return request, fmt.Errorf("the argument %q is missing or empty: it is part of the address", p.argument)
			}
			inPath[p.name] = text
		case openapi3.ParameterInQuery:
			if key := r.repeatedName(p, value); key != "" {
				return request, fmt.Errorf("the argument %q must not have the key %q, which is another parameter", p.argument, core.Clip(key, 100))
			}
			pairs = append(pairs, p.pairs(value)...)
		case openapi3.ParameterInHeader:
			text, ok := p.text(value, func(text string) string { return text })
			if strings.ContainsFunc(text, unicode.IsControl) {
				return request, fmt.Errorf("the argument %q must be one line: it is a header", p.argument)
			}
			if ok {
				request.headers[p.name] = text
			}
		}
	}
	if value, ok := arguments[bodyArgument]; ok && r.body.contentType != "" {
		body, err := r.body.encode(value)
		if err != nil {
			return request, err
		}
		request.body, request.headers["Content-Type"] = body, r.body.contentType
	}
	address, err := expandPath(r.address, func(name string) (string, bool) { return inPath[name], inPath[name] != "" })
	if err != nil {
		return request, err
	}
	address, fixed, _ := strings.Cut(address, "?")
	if fixed != "" {
		pairs = append([]string{fixed}, pairs...)
	}
	request.url, err = withQuery(address, pairs)
	return request, err
}

// repeatedName returns the key of an object that would be sent by the name of another parameter; empty
// = there is none.
func (r operationRequest) repeatedName(p parameter, value any) string {
	object, _ := value.(map[string]any)
	if !p.explode || p.style == openapi3.SerializationDeepObject || p.style == styleJSON {
		return ""
	}
	_, fixed, _ := strings.Cut(r.address, "?")
	set, _ := url.ParseQuery(fixed) // what can be read of it
	names := slices.Collect(maps.Keys(set))
	for _, other := range r.parameters {
		if other.in == openapi3.ParameterInQuery && other.name != p.name {
			names = append(names, other.name)
		}
	}
	for key := range object {
		if containsFold(names, key) {
			return key
		}
	}
	return ""
}

// hasPathParameter reports whether a parameter of the name is part of the path.
func (r operationRequest) hasPathParameter(name string) bool {
	return slices.ContainsFunc(r.parameters, func(p parameter) bool { return p.name == name && p.in == openapi3.ParameterInPath })
}
