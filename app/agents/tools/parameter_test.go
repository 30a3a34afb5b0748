package tools_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// listItems is a document with one operation: its path, and what follows its operationId in it.
const listItems = `openapi: 3.0.3
info: {title: Items, version: "1"}
servers: [{url: "https://items.example"}]
paths:
  %s:
    get:
      operationId: listItems
      responses: {"200": {description: ok}}
      %s
`

// items returns the tool of listItems at a server that answers with the request, or its fault.
func items(t *testing.T, path, rest string, d core.ToolDefinition) (*tools.Custom, *core.FieldError) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.RequestURI)
		for _, name := range []string{"X-Ids", "Authorization", "Accept", "Cookie"} {
			for _, value := range r.Header.Values(name) {
				fmt.Fprintf(w, " %s=%s", name, value)
			}
		}
	}))
	t.Cleanup(server.Close)
	d.Operations, d.Server = []string{"listItems"}, server.URL
	got, fault := openAPI(t, fmt.Sprintf(listItems, path, rest), d)
	if fault != nil {
		return nil, fault
	}
	return got.Tools[0], nil
}

// Parameters are written as OpenAPI says, in each place, and none leaves its place.
func TestParameters(t *testing.T) {
	t.Parallel()
	const list = `{"p":["blue","b,l&a|c k"]}`
	for name, c := range map[string]struct{ path, parameter, arguments, want string }{
		"list":           {"/a", "in: query", list, "/a?p=blue&p=b%2Cl%26a%7Cc+k"},
		"list, one text": {"/a", "in: query, explode: false", list, "/a?p=blue%2Cb%2Cl%26a%7Cc+k"},
		"text":           {"/a", "in: query", `{"p":"a b"}`, "/a?p=a+b"},
		"empty text":     {"/a", "in: query", `{"p":""}`, "/a?p="},
		"empty list":     {"/a", "in: query, explode: false", `{"p":[]}`, "/a"},
		"null":           {"/a", "in: query", `{"p":null}`, "/a"},
		"fixed query":    {"/a?b=1", "in: query", `{"p":true}`, "/a?b=1&p=true"},
		"fragment":       {"/a#b", "in: query", `{"p":true}`, "/a?p=true"},
		"JSON":           {"/a", "in: query, content: {application/json: {schema: {type: object}}}", `{"p":{"R":[1]}}`, "/a?p=%7B%22R%22%3A%5B1%5D%7D"},
		"path":           {"/a/{p}/b", "in: path, required: true", `{"p":"../é?#"}`, "/a/..%2F%C3%A9%3F%23/b"},
		"path, list":     {"/a/{p}", "in: path, required: true", `{"p":["a","b"]}`, "/a/a%2Cb"},
		"path, dots":     {"/a/{p}", "in: path, required: true", `{"p":[".."]}`, "error: an argument must not name the current or the parent folder"},
		"path, empty":    {"/a/{p}", "in: path, required: true", `{"p":[]}`, `error: the argument "p" is missing or empty: it is part of the address`},
		"another name":   {"/a", "in: query", `{"q":"1","P":"1"}`, "/a"},
		"header":         {"/a", "in: query}, {name: X-Ids, in: header", `{"X-Ids":["a b","c"]}`, "/a X-Ids=a b,c"},
		"two lines":      {"/a", "in: query}, {name: X-Ids, in: header", `{"X-Ids":"a\nCookie: b"}`, `error: the argument "X-Ids" must be one line: it is a header`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool, fault := items(t, c.path, "parameters: [{name: p, "+c.parameter+"}]", core.ToolDefinition{})
			must.True(t, fault == nil, "got %+v", fault)
			got, err := callTool(t, tool, c.arguments)
			if err != nil {
				got = "error: " + err.Error()
			}
			if got = strings.TrimSuffix(got, acceptHeader); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// acceptHeader is what items answers with at the end.
const acceptHeader = " Accept=application/json, text/*;q=0.9, */*;q=0.1"

// The key of a call is no argument of an operation that writes, and a header of the definition holds.
func TestIdempotencyKeyParameter(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Values("Idempotency-Key"), r.Header.Values("X-Key"))
	}))
	t.Cleanup(server.Close)
	document := fmt.Sprintf(listItems, "/a", "parameters: [{name: idempotency-key, in: header}, {name: x-key, in: header}]")
	document = strings.Replace(document, "get:", "post:", 1)
	const key = "bf2353790f0593455f40ba9ef1b5da16" // of the call of callTool
	for want, d := range map[string]core.ToolDefinition{
		"[" + key + "] [x]": {}, "[fixed] [x]": {Headers: map[string]string{"idempotency-key": "fixed"}},
	} {
		d.Operations, d.Server = []string{"listItems"}, server.URL
		got, fault := openAPI(t, document, d)
		must.True(t, fault == nil, "got %+v", fault)
		compare.Equal(t, "it is an argument", false, strings.Contains(string(got.Tools[0].Definition.Parameters), "idempotency"))
		compare.Equal(t, "text", want, must.Get(callTool(t, got.Tools[0], `{"idempotency-key":"i","x-key":"x"}`))(t))
	}
}

// Arguments have names that providers take, one for each parameter, and keep the document's where they
// can.
func TestArgumentNames(t *testing.T) {
	t.Parallel()
	const rest = `parameters: [{name: id, in: path, required: true}, {name: id, in: query, description: Another.}, {name: 'page[size]', in: query}, {name: body, in: query}]
      requestBody: {content: {application/json: {schema: {type: object}}}}`
	tool, fault := items(t, "/a/{id}", rest, core.ToolDefinition{})
	must.True(t, fault == nil, "got %+v", fault)
	want := `{"properties":{"body":{"type":"object"},"body_230d8358":{"description":"body in query."},"id":{},"id_a5614527":{"description":"id in query. Another."},"page_size_":{"description":"page[size] in query."}},"required":["id"],"type":"object"}`
	compare.Equal(t, "parameters", want, string(tool.Definition.Parameters))
	got, err := callTool(t, tool, `{"id":1,"id_a5614527":2,"page_size_":3,"body_230d8358":4,"body":{}}`)
	if want := "/a/1?id=2&page%5Bsize%5D=3&body=4"; err != nil || strings.TrimSuffix(got, acceptHeader) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// What cannot be sent is refused when the document is read, with the names of the operation and the
// parameter.
func TestUnsupportedParameters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, parameter, want string }{
		"matrix":        {"/a/{p}", "{name: p, in: path, required: true, style: matrix}", `parameter p: its style "matrix" is not supported`},
		"deep object":   {"/a", "{name: p, in: query, style: deepObject}", `parameter p: its style "deepObject" is not supported`},
		"an object":     {"/a", "{name: p, in: query, schema: {type: object}}", "parameter p: it is an object, which is supported in the body only"},
		"another place": {"/a", "{name: p, in: body}", `parameter p: it is in "body", which is not supported`},
		"XML":           {"/a", "{name: p, in: query, content: {text/xml: {schema: {type: string}}}}", "parameter p: its content is not JSON, which is not supported"},
		"cookie":        {"/a", "{name: p, in: cookie, required: true}", "parameter p: it is a cookie that is required; set Cookie in headers"},
		"a header":      {"/a", "{name: p q, in: header}", "parameter p q: it is not the name of a header"},
		"of the query":  {"/a/{p}", "{name: p, in: query}", "its path has {p}, which is no parameter in path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, fault := items(t, c.path, "parameters: ["+c.parameter+"]", core.ToolDefinition{})
			want := "operation listItems: " + c.want
			compare.True(t, fault != nil && fault.Field == "operations[0]" && fault.Detail == want, "got %+v, want %s", fault, want)
		})
	}
}

// A body is sent in the JSON type that the document names; other types are refused if the
// body is required.
func TestOperationBodies(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.Header.Get("Content-Type"), body)
	}))
	t.Cleanup(server.Close)
	const value = `{"body":{"a":"x&y z","b":[1,2],"c":{"d":true}}}`
	for name, c := range map[string]struct{ content, arguments, want string }{
		"JSON":              {"application/json: {schema: {}}", value, `application/json {"a":"x&y z","b":[1,2],"c":{"d":true}}`},
		"JSON, no schema":   {"application/json: {}", `{"body":[1]}`, "application/json [1]"},
		"none":              {"application/json: {schema: {}}", "{}", "error: the arguments do not match the schema: at '': missing property 'body'"},
		"JSON of a kind":    {"application/merge-patch+json: {schema: {}}", `{"body":[null]}`, "application/merge-patch+json [null]"},
		"JSON in a charset": {"application/json; charset=utf-8: {schema: {}}", `{"body":"a"}`, `application/json; charset=utf-8 "a"`},
		"JSON or a form":    {"application/x-www-form-urlencoded: {schema: {}}, application/json: {schema: {}}", `{"body":1}`, "application/json 1"},
		"another type":      {"multipart/form-data: {schema: {}}", value, "refused: operation listItems: its body is not JSON, which is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document := fmt.Sprintf(listItems, "/a", "requestBody: {required: true, content: {"+c.content+"}}")
			got, fault := openAPI(t, strings.Replace(document, "get:", "post:", 1), core.ToolDefinition{Operations: []string{"listItems"}, Server: server.URL})
			var text string
			if fault != nil {
				text = "refused: " + fault.Detail
			} else if answer, err := callTool(t, got.Tools[0], c.arguments); err != nil {
				text = "error: " + err.Error()
			} else {
				text = answer
			}
			compare.Equal(t, "text", c.want, text)
		})
	}
}
