package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// HTTPMethods returns the methods of HTTP tools.
func HTTPMethods() []string {
	return []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
}

// isReading reports whether requests of the method change nothing.
func isReading(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// endpoint is where a tool sends its requests, and how it builds them.
type endpoint struct {
	method     string
	newRequest func(arguments map[string]any) (webRequest, error)
}

// requestTemplate is what the requests of an HTTP tool are made of.
type requestTemplate struct {
	method  string
	address string            // with {argument} in its path and its query
	query   map[string]string // with {argument}
	hasBody bool              // the other arguments are the body, and not part of the query
}

// NewHTTP returns the tool of a definition of the kind http.
func NewHTTP(d core.ToolDefinition, web Web) (*Custom, error) {
	if len(d.Parameters) == 0 {
		d.Parameters = json.RawMessage(noArguments)
	}
	schema, err := compileClosed(d.Parameters)
	if err != nil {
		return nil, fmt.Errorf("tool %s: parameters: %w", d.Name, err)
	}
	r := requestTemplate{method: d.Method, address: d.URL, query: d.Query}
	if r.method == "" {
		r.method = http.MethodGet
	}
	r.hasBody = r.method == http.MethodPost || r.method == http.MethodPut || r.method == http.MethodPatch
	spec := llm.ToolSpec{Name: d.Name, Description: d.Description, Parameters: fitParameters(d.Parameters)}
	return newRequestTool(d, spec, endpoint{r.method, r.newRequest}, schema, web), nil
}

// newRequestTool returns the tool of an endpoint.
func newRequestTool(d core.ToolDefinition, spec llm.ToolSpec, e endpoint, schema *jsonschema.Schema, web Web) *Custom {
	tool := &Custom{Definition: spec, Approval: core.ApprovalAlways, Repeatable: isReading(e.method)}
	if isReading(e.method) {
		tool.Approval = core.ApprovalNever
	}
	if d.Idempotent != nil {
		tool.Repeatable = *d.Idempotent
	}
	tool.Execute = func(ctx context.Context, call Call) (string, error) {
		arguments, err := parseChecked(call.Arguments, schema)
		if err != nil {
			return "", err
		}
		headers, err := web.Env.Headers(d)
		if err != nil {
			return "", err
		}
		request, err := e.newRequest(arguments)
		if err != nil {
			return "", err
		}
		if !isReading(e.method) {
			sum := sha256.Sum256([]byte(string(call.Session.ID) + "/" + call.ID))
			request.headers[keyHeader] = hex.EncodeToString(sum[:16])
		}
		maps.Copy(request.headers, headers)
		answer, err := web.send(ctx, d, request)
		if err != nil {
			return "", err
		}
		secrets := web.Env.Secrets(d)
		answer.body = []byte(HideSecrets(string(answer.body), secrets)) // before anything is clipped
		text, err := answer.text(d.Result)
		if err != nil {
			return "", errors.New(HideSecrets(err.Error(), secrets))
		}
		return HideSecrets(text, secrets), nil
	}
	return tool
}

// keyHeader is the header with the key of a call.
const keyHeader = "Idempotency-Key"

// newRequest returns the request with the arguments.
func (t requestTemplate) newRequest(arguments map[string]any) (webRequest, error) {
	rest := maps.Clone(arguments)
	for _, text := range append(slices.Collect(maps.Values(t.query)), t.address) {
		names, _ := placeholders(text)
		for _, name := range names {
			delete(rest, name)
		}
	}
	r := webRequest{method: t.method, headers: map[string]string{}}
	var err error
	if t.hasBody {
		if r.body, err = core.EncodeJSON(rest); err != nil {
			return r, fmt.Errorf("the arguments are not JSON: %w", err)
		}
		rest = nil
	}
	r.url, err = t.expand(arguments, rest)
	return r, err
}

// expand returns the address with the arguments; rest are those that are parameters of the query by
// their own names.
func (t requestTemplate) expand(arguments, rest map[string]any) (string, error) {
	address, fixed, _ := strings.Cut(t.address, "?")
	address, err := expandPath(address, func(name string) (string, bool) {
		text, ok := textOf(arguments[name])
		return url.PathEscape(text), ok
	})
	if err != nil {
		return "", err
	}
	var pairs, set []string
	for pair := range strings.SplitSeq(fixed, "&") { // it is encoded already
		name, _, _ := strings.Cut(pair, "=")
		name, _ = url.QueryUnescape(name)
		set = append(set, name)
		if expanded, ok := expandText(pair, arguments, url.QueryEscape); ok && expanded != "" {
			pairs = append(pairs, expanded)
		}
	}
	query := url.Values{}
	for name, value := range t.query {
		if text, ok := expandText(value, arguments, func(text string) string { return text }); ok {
			query.Set(name, text)
		}
	}
	set = slices.AppendSeq(set, maps.Keys(t.query))
	for name, value := range rest {
		if containsFold(set, name) {
			return "", fmt.Errorf("the tool sets %q itself; leave the argument out", core.Clip(name, 100))
		}
		list, several := value.([]any)
		if !several {
			list = []any{value}
		}
		for _, item := range list {
			if text, ok := textOf(item); ok {
				query.Add(name, text)
			}
		}
	}
	if encoded := query.Encode(); encoded != "" {
		pairs = append(pairs, encoded)
	}
	return withQuery(address, pairs)
}

// withQuery returns the address with the pairs of a query, or an error for the model if it is too
// long.
func withQuery(address string, pairs []string) (string, error) {
	if len(pairs) > 0 {
		address += "?" + strings.Join(pairs, "&")
	}
	if len(address) > maxURL {
		return "", fmt.Errorf("the address would have more than %d characters; use shorter arguments", maxURL)
	}
	return address, nil
}

// maxErrorText bounds what the model reads of an answer that is an error, in bytes.
const maxErrorText = 4 << 10

// text returns the part of the answer at the JSON Pointer as text.
func (a webAnswer) text(pointer string) (string, error) {
	content := string(a.body)
	if len(a.body) > 0 && !isReadable(a.mediaType) {
		content = fmt.Sprintf("[%s, %d bytes]", core.CleanText(core.Clip(a.mediaType, 100)), len(a.body))
	}
	if a.status < 200 || a.status > 299 {
		return "", fmt.Errorf("the server answered with status %d %s: %s", a.status, http.StatusText(a.status), core.Clip(content, maxErrorText))
	}
	if content == "" {
		return fmt.Sprintf("[status %d, no content]", a.status), nil
	}
	if pointer == "" {
		return content, nil
	}
	value := json.RawMessage(bytes.TrimPrefix(a.body, []byte("\ufeff"))) // a byte order mark
	if !json.Valid(value) {
		return "", fmt.Errorf("the answer is not JSON, and the tool reads %s of it", pointer)
	}
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		var members map[string]json.RawMessage
		var items []json.RawMessage
		var found bool
		if json.Unmarshal(value, &members) == nil {
			value, found = members[token]
		} else if i, err := strconv.Atoi(token); err == nil && json.Unmarshal(value, &items) == nil && i >= 0 && i < len(items) {
			value, found = items[i], true
		}
		if !found {
			return "", fmt.Errorf("the answer has nothing at %s; it is: %s", pointer, core.Clip(string(a.body), maxErrorText))
		}
	}
	var text string
	if string(value) != "null" && json.Unmarshal(value, &text) == nil {
		return text, nil
	}
	return string(bytes.TrimSpace(value)), nil
}
