package tools

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"

	"bobbin/app/core"
)

// operationRequest is what the requests of an operation are made of.
type operationRequest struct {
	method, address string // with {parameter}
	parameters      []parameter
	contentType     string // of the body; empty = there is no body
}

// parameter is a parameter of an operation.
type parameter struct {
	argument string // its name for the model
	name, in string
	isJSON   bool // its value is a JSON text
	isList   bool // each item of a list is a parameter of the query
}

// text returns a value as text; false = it is missing.
func (p parameter) text(value any) (string, bool) {
	if list, ok := value.([]any); ok && len(list) == 0 && !p.isJSON {
		return "", false
	}
	if p.isJSON && value != nil {
		text, err := core.EncodeJSON(value)
		return string(text), err == nil
	}
	return textOf(value)
}

// newRequest returns the request with the arguments. Errors are for the model.
func (r operationRequest) newRequest(arguments map[string]any) (webRequest, error) {
	request := webRequest{method: r.method, headers: map[string]string{}}
	address, fixed, _ := strings.Cut(r.address, "?")
	inPath, pairs := map[string]string{}, []string{}
	if fixed != "" {
		pairs = append(pairs, fixed)
	}
	for _, p := range r.parameters {
		value := arguments[p.argument]
		text, ok := p.text(value)
		switch {
		case p.in == openapi3.ParameterInPath && text == "":
			return request, fmt.Errorf("the argument %q is missing or empty: it is part of the address", p.argument)
		case p.in == openapi3.ParameterInPath:
			inPath[p.name] = url.PathEscape(text)
		case !ok:
		case p.in == openapi3.ParameterInHeader && strings.ContainsFunc(text, unicode.IsControl):
			return request, fmt.Errorf("the argument %q must be one line: it is a header", p.argument)
		case p.in == openapi3.ParameterInHeader:
			request.headers[p.name] = text
		default:
			list, several := value.([]any)
			if !several || !p.isList || p.isJSON {
				list = []any{text}
			}
			for _, item := range list {
				if text, ok := textOf(item); ok {
					pairs = append(pairs, url.QueryEscape(p.name)+"="+url.QueryEscape(text))
				}
			}
		}
	}
	if value, ok := arguments[bodyArgument]; ok && r.contentType != "" {
		body, err := core.EncodeJSON(value)
		if err != nil {
			return request, fmt.Errorf("the arguments are not JSON: %w", err)
		}
		request.body, request.headers["Content-Type"] = body, r.contentType
	}
	address, err := expandPath(address, func(name string) (string, bool) { return inPath[name], inPath[name] != "" })
	if err == nil {
		request.url, err = withQuery(address, pairs)
	}
	return request, err
}
