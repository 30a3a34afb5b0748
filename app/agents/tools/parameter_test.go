package tools_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
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
func items(t *testing.T, path, rest string, d core.ToolDefinition) (*tools.Custom, *tools.Fault) {
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

// Parameters are written in their style, in each place: the tables of style values in the
// specification, and what must not leave its place.
func TestParameterStyles(t *testing.T) {
	t.Parallel()
	const (
		list   = `{"p":["blue","b,l&a|c k"]}`
		object = `{"p":{"R":100,"G":"x=y"}}`
	)
	for name, c := range map[string]struct{ path, parameter, arguments, want string }{
		"form":                        {"/a", "in: query", list, "/a?p=blue&p=b%2Cl%26a%7Cc%20k"},
		"form, one text":              {"/a", "in: query, explode: false", list, "/a?p=blue,b%2Cl%26a%7Cc%20k"},
		"form, object":                {"/a", "in: query", object, "/a?G=x%3Dy&R=100"},
		"form, object, one text":      {"/a", "in: query, explode: false", object, "/a?p=G,x%3Dy,R,100"},
		"form, object, another":       {"/a?fixed=1", "in: query}, {name: q, in: query", `{"p":{"Q":"dup"},"q":"z"}`, `error: the argument "p" must not have the key "Q", which is another parameter`},
		"form, object, fixed":         {"/a?fixed=1", "in: query", `{"p":{"fixed":"2"}}`, `error: the argument "p" must not have the key "fixed", which is another parameter`},
		"form, text":                  {"/a", "in: query", `{"p":"a b"}`, "/a?p=a%20b"},
		"form, empty text":            {"/a", "in: query", `{"p":""}`, "/a?p="},
		"form, empty list":            {"/a", "in: query, explode: false", `{"p":[]}`, "/a"},
		"form, null":                  {"/a", "in: query", `{"p":null}`, "/a"},
		"form, fixed query":           {"/a?b=1", "in: query", `{"p":true}`, "/a?b=1&p=true"},
		"form, fragment":              {"/a#b", "in: query", `{"p":true}`, "/a?p=true"},
		"spaces":                      {"/a", "in: query, style: spaceDelimited", list, "/a?p=blue%20b%2Cl%26a%7Cc%20k"},
		"spaces, object":              {"/a", "in: query, style: spaceDelimited", object, "/a?p=G%20x%3Dy%20R%20100"},
		"pipes":                       {"/a", "in: query, style: pipeDelimited, explode: false", list, "/a?p=blue%7Cb%2Cl%26a%7Cc%20k"},
		"pipes, each":                 {"/a", "in: query, style: pipeDelimited, explode: true", list, "/a?p=blue&p=b%2Cl%26a%7Cc%20k"},
		"deep object":                 {"/a", "in: query, style: deepObject, explode: true", object, "/a?p%5BG%5D=x%3Dy&p%5BR%5D=100"},
		"deep object, list":           {"/a", "in: query, style: deepObject", `{"p":{"k]&q":["a",null,{"b":1}]}}`, "/a?p%5Bk%5D%26q%5D%5B%5D=a&p%5Bk%5D%26q%5D%5B%5D%5Bb%5D=1"},
		"JSON":                        {"/a", "in: query, content: {application/json: {schema: {type: object}}}", object, "/a?p=%7B%22G%22%3A%22x%3Dy%22%2C%22R%22%3A100%7D"},
		"path":                        {"/a/{p}/b", "in: path, required: true", `{"p":"../é?#"}`, "/a/..%2F%C3%A9%3F%23/b"},
		"path, list":                  {"/a/{p}", "in: path, required: true", list, "/a/blue,b%2Cl%26a%7Cc%20k"},
		"path, object":                {"/a/{p}", "in: path, required: true", object, "/a/G,x%3Dy,R,100"},
		"path, object, each":          {"/a/{p}", "in: path, required: true, explode: true", object, "/a/G=x%3Dy,R=100"},
		"path, dots":                  {"/a/{p}", "in: path, required: true", `{"p":[".."]}`, "error: an argument must not name the current or the parent folder"},
		"path, empty":                 {"/a/{p}", "in: path, required: true", `{"p":[]}`, `error: the argument "p" is missing or empty: it is part of the address`},
		"unknown argument":            {"/a", "in: query", `{"q":"1"}`, "/a"},
		"an argument of another case": {"/a", "in: query", `{"P":"1"}`, "/a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool, fault := items(t, c.path, "parameters: [{name: p, "+c.parameter+"}]", core.ToolDefinition{})
			if fault != nil {
				t.Fatalf("got %+v", fault)
			}
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

// Headers are lists of texts, which are not escaped, and stay one line.
func TestHeaderParameters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ parameters, arguments, want string }{
		"list":         {"{name: X-Ids, in: header}", `{"X-Ids":["a b","c"]}`, "/a X-Ids=a b,c"},
		"object":       {"{name: X-Ids, in: header}", `{"X-Ids":{"b":2,"a":"x"}}`, "/a X-Ids=a,x,b,2"},
		"object, each": {"{name: X-Ids, in: header, explode: true}", `{"X-Ids":{"b":2,"a":"x"}}`, "/a X-Ids=a=x,b=2"},
		"two lines":    {"{name: X-Ids, in: header}", `{"X-Ids":"a\nCookie: b"}`, `error: the argument "X-Ids" must be one line: it is a header`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool, fault := items(t, "/a", "parameters: ["+c.parameters+"]", core.ToolDefinition{})
			if fault != nil {
				t.Fatalf("got %+v", fault)
			}
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

// What the request has by itself, and what the definition sets, is no argument, however the document
// writes it.
func TestFixedHeaders(t *testing.T) {
	t.Parallel()
	const parameters = `parameters: [{name: authorization, in: header, required: true}, {name: ACCEPT, in: header}, {name: content-type, in: header},
        {name: x-ids, in: header, required: true}, {name: session, in: cookie, required: true}, {name: theme, in: cookie}]`
	d := core.ToolDefinition{Bearer: "TOKEN", Headers: map[string]string{"X-IDS": "7", "cookie": "session=1"}}
	tool, fault := items(t, "/a", parameters, d)
	if fault != nil {
		t.Fatalf("got %+v", fault)
	}
	if got, want := string(tool.Definition.Parameters), `{"properties":{},"required":[],"type":"object"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	got, err := callTool(t, tool, `{"authorization":"Bearer of the model","x-ids":"8","X-Ids":"9","Cookie":"session=2","ACCEPT":"text/html"}`)
	if want := "/a X-Ids=7 Authorization=Bearer ***" + acceptHeader + " Cookie=session=1"; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

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
	for name, c := range map[string]struct {
		d    core.ToolDefinition
		want string
	}{
		"default":    {core.ToolDefinition{}, "[" + key + "] [x]"},
		"named":      {core.ToolDefinition{IdempotencyKey: "X-KEY"}, "[i] [" + key + "]"},
		"configured": {core.ToolDefinition{Headers: map[string]string{"idempotency-key": "fixed"}}, "[fixed] [x]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.d.Operations, c.d.Server = []string{"listItems"}, server.URL
			got, fault := openAPI(t, document, c.d)
			if fault != nil {
				t.Fatalf("got %+v", fault)
			}
			text, err := callTool(t, got.Tools[0], `{"idempotency-key":"i","x-key":"x"}`)
			if err != nil || text != c.want {
				t.Errorf("got %s, %v, want %s", text, err, c.want)
			}
		})
	}
}

// Arguments have names that providers take, one for each parameter, and keep the document's where they
// can.
func TestArgumentNames(t *testing.T) {
	t.Parallel()
	const rest = `parameters: [{name: id, in: path, required: true}, {name: id, in: query, description: Another.}, {name: 'page[size]', in: query}, {name: body, in: query}]
      requestBody: {content: {application/json: {schema: {type: object}}}}`
	tool, fault := items(t, "/a/{id}", rest, core.ToolDefinition{})
	if fault != nil {
		t.Fatalf("got %+v", fault)
	}
	want := `{"properties":{"body":{"type":"object"},"body_230d8358":{"description":"body in query."},"id":{},"id_a5614527":{"description":"id in query. Another."},"page_size_":{"description":"page[size] in query."}},"required":["id"],"type":"object"}`
	if got := string(tool.Definition.Parameters); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
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
		"label":         {"/a/{p}", "{name: p, in: path, required: true, style: label}", `parameter p: its style "label" is not supported`},
		"matrix":        {"/a/{p}", "{name: p, in: path, required: true, style: matrix}", `parameter p: its style "matrix" is not supported`},
		"another style": {"/a", "{name: p, in: query, style: simple}", `parameter p: its style "simple" is not supported`},
		"another place": {"/a", "{name: p, in: body}", `parameter p: it is in "body", which is not supported`},
		"XML":           {"/a", "{name: p, in: query, content: {text/xml: {schema: {type: string}}}}", "parameter p: its content is not JSON, which is not supported"},
		"cookie":        {"/a", "{name: p, in: cookie, required: true}", "parameter p: it is a cookie that is required; set Cookie in headers"},
		"a header":      {"/a", "{name: p q, in: header}", "parameter p q: it is not the name of a header"},
		"of the query":  {"/a/{p}", "{name: p, in: query}", "its path has {p}, which is no parameter in path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, fault := items(t, c.path, "parameters: ["+c.parameter+"]", core.ToolDefinition{})
			if want := "operation listItems: " + c.want; fault == nil || fault.Key != "operations[0]" || fault.Problem != want {
				t.Errorf("got %+v, want %s", fault, want)
			}
		})
	}
}
