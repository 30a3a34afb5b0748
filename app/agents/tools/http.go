package tools

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-openapi/jsonpointer"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/netguard"
)

// isReading reports whether requests of the method change nothing.
func isReading(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// requestTemplate is what the requests of a tool are made of.
type requestTemplate struct {
	method      string
	address     string // with {parameter} in its path, and {argument} in its query
	parameters  []parameter
	query       map[string]string // more of the query, with {argument}
	takesRest   bool              // arguments without a place are the body, or parameters of the query where there is none
	contentType string            // of the body; empty = there is none
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
	r := requestTemplate{method: cmp.Or(d.Method, http.MethodGet), address: d.URL, query: d.Query, takesRest: true}
	path, _, _ := strings.Cut(d.URL, "?")
	names, _ := placeholders(path)
	for _, name := range names {
		r.parameters = append(r.parameters, parameter{argument: name, name: name, in: openapi3.ParameterInPath})
	}
	if r.method == http.MethodPost || r.method == http.MethodPut || r.method == http.MethodPatch {
		r.contentType = jsonType
	}
	spec := llm.ToolSpec{Name: d.Name, Description: d.Description, Parameters: fitParameters(d.Parameters)}
	return newRequestTool(d, spec, r, schema, web), nil
}

// newRequestTool returns the tool that sends the requests.
func newRequestTool(d core.ToolDefinition, spec llm.ToolSpec, r requestTemplate, schema *jsonschema.Schema, web Web) *Custom {
	tool := &Custom{Definition: spec, Approval: core.ApprovalAlways, Repeatable: isReading(r.method)}
	if isReading(r.method) {
		tool.Approval = core.ApprovalNever
	}
	if d.Idempotent != nil {
		tool.Repeatable = *d.Idempotent
	}
	tool.Call = func(ctx context.Context, call Call) (string, error) {
		arguments, err := ParseChecked(call.Arguments, schema)
		if err != nil {
			return "", err
		}
		headers, err := web.Env.Headers(d)
		if err != nil {
			return "", err
		}
		request, err := r.newRequest(arguments)
		if err != nil {
			return "", err
		}
		if !isReading(r.method) {
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

// newRequest returns the request with the arguments. Errors are for the model.
func (t requestTemplate) newRequest(arguments map[string]any) (webRequest, error) {
	request := webRequest{method: t.method, headers: map[string]string{}}
	address, fixed, _ := strings.Cut(t.address, "?")
	var pairs, set []string
	for pair := range strings.SplitSeq(fixed, "&") { // it is encoded already
		name, _, _ := strings.Cut(pair, "=")
		name, _ = url.QueryUnescape(name)
		set = append(set, name)
		if expanded, ok := expandText(pair, arguments, url.QueryEscape); ok && expanded != "" {
			pairs = append(pairs, expanded)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.query)) {
		set = append(set, name)
		if text, ok := expandText(t.query[name], arguments, func(text string) string { return text }); ok {
			pairs = append(pairs, url.QueryEscape(name)+"="+url.QueryEscape(text))
		}
	}
	parameters, inPath := slices.Clip(t.parameters), map[string]string{}
	body, hasBody := arguments[bodyArgument]
	if t.takesRest {
		rest := t.rest(arguments)
		if body, hasBody = rest, true; t.contentType != "" {
			rest = nil
		}
		for _, name := range slices.Sorted(maps.Keys(rest)) {
			if containsFold(set, name) {
				return request, fmt.Errorf("the tool sets %q itself; leave the argument out", core.Clip(name, 100))
			}
			parameters = append(parameters, parameter{argument: name, name: name, in: openapi3.ParameterInQuery, isList: true})
		}
	}
	for _, p := range parameters {
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
			pairs = append(pairs, p.pairs(value, text)...)
		}
	}
	if hasBody && t.contentType != "" {
		encoded, err := core.EncodeJSON(body)
		if err != nil {
			return request, fmt.Errorf("the arguments are not JSON: %w", err)
		}
		request.body, request.headers["Content-Type"] = encoded, t.contentType
	}
	err := request.setAddress(address, inPath, pairs)
	return request, err
}

// rest returns the arguments that the address and the query do not name.
func (t requestTemplate) rest(arguments map[string]any) map[string]any {
	rest := maps.Clone(arguments)
	for _, text := range append(slices.Collect(maps.Values(t.query)), t.address) {
		names, _ := placeholders(text)
		for _, name := range names {
			delete(rest, name)
		}
	}
	return rest
}

// setAddress makes the address of a path and the pairs of its query. Texts, which are escaped, go into the path, each
// within its segment.
func (r *webRequest) setAddress(path string, inPath map[string]string, pairs []string) error {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		names, _ := placeholders(segment)
		for _, name := range names {
			segment = strings.ReplaceAll(segment, "{"+name+"}", inPath[name])
		}
		if len(names) > 0 && (segment == "." || segment == "..") {
			return errors.New("an argument must not name the current or the parent folder")
		}
		segments[i] = segment
	}
	if r.url = strings.Join(segments, "/"); len(pairs) > 0 {
		r.url += "?" + strings.Join(pairs, "&")
	}
	if len(r.url) > maxURL {
		return fmt.Errorf("the address would have more than %d characters; use shorter arguments", maxURL)
	}
	return nil
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
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body)) // with numbers as they are written
	if err != nil {
		return "", fmt.Errorf("the answer is not JSON, and the tool reads %s of it", pointer)
	}
	place, err := jsonpointer.New(pointer)
	value, _, err2 := place.Get(document)
	if err != nil || err2 != nil {
		return "", fmt.Errorf("the answer has nothing at %s; it is: %s", pointer, core.Clip(string(a.body), maxErrorText))
	}
	if text, ok := value.(string); ok {
		return text, nil
	}
	part, err := core.EncodeJSON(value)
	return string(part), err
}

// Web sends the requests of the tools of definitions. Safe for concurrent use.
//
// Only public addresses are connected to, unless the definition names the host (private_hosts). A
// request is sent once: no connection is used twice, and nothing is repeated. A redirect is followed
// for GET and HEAD only, and to the same host only. No proxy is used, as it could not be checked.
type Web struct {
	Env      Environment
	MaxBytes int64 // of an answer
}

// webRequest is a request of a tool.
type webRequest struct {
	method, url string
	headers     map[string]string
	body        []byte // nil = none
}

// webAnswer is what came back.
type webAnswer struct {
	status    int
	mediaType string // without parameters
	body      []byte // of texts in UTF-8
}

// send sends the request. Errors are for the model.
func (w Web) send(ctx context.Context, d core.ToolDefinition, r webRequest) (webAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, bytes.NewReader(r.body))
	if err != nil {
		return webAnswer{}, errors.New("the address is not valid")
	}
	if r.body == nil {
		req.Body = http.NoBody
	}
	req.GetBody = nil // or a redirect could send it again
	req.Header.Set("Accept", "application/json, text/*;q=0.9, */*;q=0.1")
	req.Header.Set("User-Agent", "Bobbin")
	for name, value := range r.headers {
		req.Header.Set(name, value)
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Minute)
	}
	response, err := (&http.Client{
		Transport: &http.Transport{
			DialContext:       GuardedDial(d.PrivateHosts, netguard.Dialer{Until: deadline, Bytes: wireFactor*w.MaxBytes + wireBytes}),
			DisableKeepAlives: true, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxHeader,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		},
		CheckRedirect: CheckRedirect,
	}).Do(req)
	if err != nil {
		return webAnswer{}, reachError(ctx, req.URL.Hostname(), err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, w.MaxBytes+1))
	switch {
	case ctx.Err() != nil:
		return webAnswer{}, ctx.Err()
	case err != nil:
		return webAnswer{}, errors.New("the connection broke while the answer was read; whether the request took effect is not known")
	case int64(len(body)) > w.MaxBytes:
		return webAnswer{}, fmt.Errorf("the answer has more than %s; ask for less", core.ByteSize(w.MaxBytes))
	}
	kind, body := decodeBody(body, response.Header.Get("Content-Type"))
	return webAnswer{response.StatusCode, kind, body}, nil
}

// reachError says why a host did not answer.
func reachError(ctx context.Context, host string, err error) error {
	var refused refusal
	switch {
	case errors.As(err, &refused):
		return refused
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, netguard.ErrNotPublic):
		return fmt.Errorf("the address of %s is not public; if it may be reached, the tool's file must name it in private_hosts", core.Clip(host, 100))
	case errors.Is(err, netguard.ErrNoHost):
		return fmt.Errorf("the host %s does not exist", core.Clip(host, 100))
	default:
		return fmt.Errorf("%s cannot be reached, or does not answer as a web server", core.Clip(host, 100))
	}
}

// GuardedDial returns a dialer that connects to public addresses, and to any address of the hosts.
func GuardedDial(hosts []string, d netguard.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		d := d
		if host, _, err := net.SplitHostPort(address); err == nil && len(hosts) > 0 && isAllowedHost(host, hosts) {
			d.Allow = func(netip.Addr) error { return nil }
		}
		return d.Dial(ctx, network, address)
	}
}

// CheckRedirect lets GET and HEAD be redirected within their host.
func CheckRedirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case first.Method != http.MethodGet && first.Method != http.MethodHead:
		return refusal("the server redirects the request, which is not followed, as it might take effect twice")
	case next.URL.Host != first.URL.Host || next.URL.Scheme != first.URL.Scheme:
		return refusal("the server redirects to another host, which is not followed")
	case len(via) > maxRedirects:
		return refusal(fmt.Sprintf("the server redirects more than %d times", maxRedirects))
	}
	return nil
}
