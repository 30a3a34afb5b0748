package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// shop is a document with parameters in all places, a body, and a schema that contains itself.
const shop = `openapi: 3.0.3
info: {title: Shop, version: "1"}
servers: [{url: "%s/{base}", variables: {base: {default: v1}}}]
paths:
  /Items/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: string}, description: The item.}
    get:
      operationId: getItem
      summary: Reads an item.
      description: Reads an item. With its parts.
      parameters:
        - {name: expand, in: query, schema: {type: array, items: {type: string, enum: [parts, price]}}}
        - {name: X-Trace, in: header, required: true, schema: {type: string}}
        - {name: crumbs, in: cookie, schema: {type: string}}
      responses: {"200": {description: ok}}
    put:
      operationId: putItem
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: "#/components/schemas/Item"}}}
      responses: {"200": {description: ok}}
components:
  schemas:
    Item:
      type: object
      required: [id, name]
      properties:
        id: {type: string, readOnly: true}
        name: {type: string, nullable: true, example: Bolt, x-order: 1}
        price: {type: number, minimum: 0, exclusiveMinimum: true}
        parts: {type: array, items: {$ref: "#/components/schemas/Item"}}
`

// openAPI returns the source of a document in a file, loaded.
func openAPI(t *testing.T, document string, d core.ToolDefinition) (tools.Listing, *core.FieldError) {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "api.yaml"), []byte(document), 0o644))
	d.Name, d.Kind, d.Document, d.File, d.PrivateHosts = "shop", core.ToolOpenAPI, "api.yaml", filepath.Join(dir, "shop.yaml"), []string{"127.0.0.1"}
	if _, fault := tools.CheckOpenAPI(d); fault != nil {
		return tools.Listing{}, fault
	}
	source := tools.NewOpenAPI(d, tools.Web{Env: environment, MaxBytes: 100_000})
	source.Run(t.Context())
	<-source.Tried()
	return source.Listing(), nil
}

// Operations of a document become tools: their parameters and their body are one schema, without
// references, and each argument goes to its place.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s trace=%s auth=%s %s", r.Method, r.RequestURI, r.Header.Get("X-Trace"), r.Header.Get("Authorization"), body)
	}))
	t.Cleanup(server.Close)
	got, fault := openAPI(t, fmt.Sprintf(shop, server.URL), core.ToolDefinition{Operations: []string{"getItem", "putItem"}, Bearer: "TOKEN"})
	must.True(t, fault == nil && len(got.Tools) == 2, "got %+v, %+v", got, fault)
	get, put := got.Tools[0], got.Tools[1]
	if get.Definition.Name != "shop__getItem" || get.Definition.Description != "Reads an item.\n With its parts." || get.Approval != core.ApprovalNever || put.Approval != core.ApprovalAlways || put.Repeatable {
		t.Errorf("got %+v, %+v", get, put)
	}
	for tool, want := range map[*tools.Custom]string{
		get: `{"properties":{"X-Trace":{"type":"string"},"expand":{"items":{"enum":["parts","price"],"type":"string"},"type":"array"},"id":{"description":"The item.","type":"string"}},"required":["X-Trace","id"],"type":"object"}`,
		put: `{"properties":{"body":{"properties":{"name":{"type":["string","null"]},"parts":{"items":{"description":"as above: Item"},"type":"array"},"price":{"minimum":0,"type":"number"}},"required":["name"],"type":"object"},"id":{"description":"The item.","type":"string"}},"required":["body","id"],"type":"object"}`,
	} {
		compare.Equal(t, tool.Definition.Name+": parameters", want, string(tool.Definition.Parameters))
	}
	for arguments, want := range map[string]string{
		`{"id":"a/b","expand":["parts","price"],"X-Trace":"t"}`: "GET /v1/Items/a%2Fb?expand=parts&expand=price trace=t auth=Bearer *** ",
		`{"id":"1","expand":["x"],"X-Trace":"t"}`:               "error: the arguments do not match the schema: at '/expand/0': value must be one of 'parts', 'price'",
	} {
		text, err := callTool(t, get, arguments)
		if err != nil {
			text = "error: " + err.Error()
		}
		compare.Equal(t, "text", want, text)
	}
	compare.Equal(t, "text", `PUT /v1/Items/1 trace= auth=Bearer *** {"name":"Bolt"}`, must.Get(callTool(t, put, `{"id":"1","body":{"name":"Bolt"}}`))(t))
}

// What is wrong with a document is a fault of the key that it belongs to.
func TestOpenAPIFaults(t *testing.T) {
	t.Parallel()
	good := fmt.Sprintf(shop, "https://shop.example")
	deep := strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	var wide strings.Builder
	for i := range 20 { // each contains the next twice: 2^20 schemas
		fmt.Fprintf(&wide, "    S%d: {type: object, properties: {a: {$ref: '#/components/schemas/S%d'}, b: {$ref: '#/components/schemas/S%d'}}}\n", i, i+1, i+1)
	}
	wide.WriteString("    S20: {type: string}\n")
	item := "{$ref: '#/components/schemas/Text'}, " // each has the whole text
	large := "    Large: {type: object, allOf: [" + strings.Repeat(item, 1000) + "]}\n    Text: {description: " + strings.Repeat("x", 100_000) + "}\n"
	for name, c := range map[string]struct{ document, key, want string }{
		"no operation":          {good, "operations[0]", `the document has no operation with the operationId "getItems"; did you mean getItem?`},
		"no document":           {"hello", "document", "it is not an OpenAPI document that can be read: "},
		"version 2":             {"swagger: '2.0'\npaths: {}\n", "document", "it is not an OpenAPI document that can be read: "},
		"no server":             {strings.Replace(good, "servers:", "x-servers:", 1), "document", "operation putItem: it has no server; set server"},
		"a path":                {strings.Replace(good, "https://shop.example", "", 1), "document", "operation putItem: its server /v1 is not an address; set server"},
		"a file":                {strings.Replace(good, "#/components/schemas/Item\"}}}", "/etc/passwd\"}}}", 1), "document", "it is not an OpenAPI document that can be read: "},
		"another host":          {strings.Replace(good, "#/components/schemas/Item\"}}}", "http://127.0.0.1/x\"}}}", 1), "document", "it is not an OpenAPI document that can be read: "},
		"deep":                  {deep, "document", "it is not an OpenAPI document that can be read: "},
		"many schemas":          {strings.Replace(strings.Replace(good, "#/components/schemas/Item\"}}}", "#/components/schemas/S0\"}}}", 1), "  schemas:\n", "  schemas:\n"+wide.String(), 1), "operations[0]", "operation putItem: its schema has more than 5000 parts"},
		"a fragment":            {strings.Replace(good, "shop.example/", "shop.example/#/", 1), "document", "operation putItem: its server https://shop.example/#/v1 is not an address; set server"},
		"a query":               {strings.Replace(good, "shop.example/", "shop.example/?", 1), "document", "operation putItem: its server https://shop.example/?v1 is not an address; set server"},
		"a body cycle":          {strings.Replace(good, "      requestBody:", "      requestBody: {$ref: \"#/components/requestBodies/A\"}\n      x-body:", 1) + "  requestBodies: {A: {$ref: \"#/components/requestBodies/B\"}, B: {$ref: \"#/components/requestBodies/A\"}}\n", "operations[0]", "operation putItem: its body cannot be resolved"},
		"same ids":              {strings.Replace(good, "operationId: getItem", "operationId: putItem", 1), "operations[0]", `the document has 2 operations with the operationId "putItem"`},
		"relative path":         {strings.Replace(good, "/Items/{id}:", "'@evil.example/items/{id}':", 1), "operations[0]", "operation putItem: its path does not begin with /"},
		"no servers":            {strings.Replace(good, "servers: [", "servers: [null] #", 1), "document", "it is not an OpenAPI document that can be read"},
		"no parameters":         {strings.Replace(good, "    parameters:\n      - {name: id,", "    parameters:\n      - null\n      - {name: id,", 1), "document", "it is not an OpenAPI document that can be read"},
		"no media type":         {strings.Replace(good, "application/json: {schema: {$ref: \"#/components/schemas/Item\"}}", "application/json: null", 1), "document", "it is not an OpenAPI document that can be read"},
		"no property":           {strings.Replace(good, "        id: {type: string, readOnly: true}", "        id: null", 1), "document", "it is not an OpenAPI document that can be read"},
		"no schema":             {strings.Replace(good, "    Item:", "    None: null\n    Item:", 1), "document", "it is not an OpenAPI document that can be read"},
		"no variable":           {strings.Replace(good, "base: {default: v1}", "base: null", 1), "document", "operation putItem: its server https://shop.example/{base} has a variable without a default; set server"},
		"no operation's server": {strings.Replace(good, "    put:\n", "    put:\n      servers: [null]\n", 1), "document", "it is not an OpenAPI document that can be read"},
		"a foreign tag":         {strings.Replace(good, "{type: number", "{type: number, default: !!binary 'x'", 1), "document", "it is not an OpenAPI document that can be read"},
		"large schemas":         {strings.Replace(strings.Replace(good, "#/components/schemas/Item\"}}}", "#/components/schemas/Large\"}}}", 1), "  schemas:\n", "  schemas:\n"+large, 1), "operations[0]", "operation putItem: its schema has more than 4 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operation := "putItem"
			if name == "no operation" {
				operation = "getItems"
			}
			_, fault := openAPI(t, c.document, core.ToolDefinition{Operations: []string{operation}})
			compare.True(t, fault != nil && fault.Field == c.key && strings.HasPrefix(fault.Detail, c.want) && len(fault.Detail) <= 500, "got %+v, want %s %s", fault, c.key, c.want)
		})
	}
}

// The servers of an operation hold before those of its path, and those before the document's; that of
// the definition holds for all.
func TestOpenAPIServers(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI) }))
	t.Cleanup(server.Close)
	document := fmt.Sprintf(`openapi: 3.0.3
info: {title: Servers, version: "1"}
servers: [{url: "%[1]s/document"}]
paths:
  /a:
    servers: [{url: "%[1]s/path"}]
    get: {operationId: ofOperation, servers: [{url: "%[1]s/{v}", variables: {v: {default: operation}}}], responses: {"200": {description: ok}}}
    delete: {operationId: ofPath, responses: {"200": {description: ok}}}
  /b:
    get: {operationId: ofDocument, responses: {"200": {description: ok}}}
`, server.URL)
	for name, c := range map[string]struct{ server, want string }{
		"of the document":   {"", "/document/b /operation/a /path/a "},
		"of the definition": {server.URL + "/own/", "/own/b /own/a /own/a "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, fault := openAPI(t, document, core.ToolDefinition{Operations: []string{"ofOperation", "ofPath", "ofDocument"}, Server: c.server})
			must.True(t, fault == nil, "got %+v", fault)
			var paths strings.Builder
			for _, tool := range got.Tools {
				text := must.Get(callTool(t, tool, "{}"))(t)
				paths.WriteString(text + " ")
			}
			compare.Equal(t, "paths", c.want, paths.String())
		})
	}
}

// A document at a URL is loaded until that succeeds, without the secrets, which a document must not
// send elsewhere.
func TestOpenAPIByURL(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	var document atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 || r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, document.Load())
	}))
	t.Cleanup(server.Close)
	document.Store(fmt.Sprintf(shop, "https://evil.example"))
	d := core.ToolDefinition{Name: "shop", Kind: core.ToolOpenAPI, Document: server.URL + "/api.yaml", Operations: []string{"getItem"}, Bearer: "TOKEN", PrivateHosts: []string{"127.0.0.1"}}
	load := func() tools.Listing {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		source := tools.NewOpenAPI(d, tools.Web{Env: environment, MaxBytes: 1000})
		go source.Run(ctx)
		<-source.Tried()
		return source.Listing()
	}
	compare.Equal(t, "load().Problem", "document: the server answered with status 503", load().Problem)
	compare.Equal(t, "problem", "document: operation getItem: its server is not that of the document, but https://evil.example, which would get the headers; set server", load().Problem)
	document.Store(fmt.Sprintf(shop, strings.Replace(server.URL, "http:", "https:", 1)))
	if got := load(); !strings.HasPrefix(got.Problem, "document: operation getItem: its server is not that of the document, but https://127.0.0.1:") {
		t.Errorf("another scheme: got %+v", got)
	}
	document.Store(strings.Replace(fmt.Sprintf(shop, ""), "servers:", "x-servers:", 1))
	got := load()
	compare.Equal(t, "no server: problem, tools", []any{"", 1}, []any{got.Problem, len(got.Tools)})
	document.Store(strings.Replace(fmt.Sprintf(shop, ""), "/{base}", "/{base}/", 1))
	if got := load(); got.Problem != "" || len(got.Tools) != 1 {
		t.Errorf("got %+v", got)
	}
}

// A schema of others is made fit for providers, in bounds.
func TestFitSchema(t *testing.T) {
	t.Parallel()
	var deep any = "x"
	for range 10_000 {
		deep = map[string]any{"a": deep}
	}
	var invalid any
	must.Do(t, json.Unmarshal([]byte(`{"type": "object", "required": "a", "title": null, "properties": {"a": {"type": "string", "enum": null, "required": true},
		"b": {"type": "array", "items": [{"type": "string"}], "minItems": "1"}, "c": {"type": "any", "description": "d", "minimum": 1.5, "exclusiveMinimum": true, "enum": "x", "anyOf": [], "allOf": [3]},
		"default": {"type": "array"}, "enum": {"type": "object", "default": {"type": "array"}}, "examples": null, "const": "text"}}`), &invalid))
	dialect := func(properties string) any {
		return map[string]any{"type": "OBJECT", "properties": json.RawMessage(properties)}
	}
	references := map[string]any{
		"$defs": map[string]any{"x": map[string]any{"type": "string"}, "y": map[string]any{"$ref": "#/$defs/z"}, "z": map[string]any{"$ref": "#/$defs/y"}},
		"properties": map[string]any{
			"a": map[string]any{"$ref": "#/$defs/x"}, "b": map[string]any{"$ref": "#/$defs/none", "title": "b"},
			"c": map[string]any{"type": "array", "items": map[string]any{"$ref": "#"}}, "e": map[string]any{"anyOf": []any{map[string]any{"$ref": "#/properties/e/anyOf/1"}, true}}, "d": map[string]any{"$ref": "https://example.org/d#/x"},
		},
	}
	for name, c := range map[string]struct {
		schema any
		want   string
	}{
		"nothing":  {nil, `{"type":"object","properties":{}}`},
		"draft":    {map[string]any{"$schema": "x", "$id": "y", "type": "object"}, `{"properties":{},"type":"object"}`},
		"no type":  {map[string]any{"properties": map[string]any{"a": map[string]any{}}}, `{"properties":{"a":{}},"type":"object"}`},
		"null":     {map[string]any{"properties": nil}, `{"properties":{},"type":"object"}`},
		"nulls":    {map[string]any{"required": nil, "properties": map[string]any{"a": map[string]any{"enum": []any{nil}, "items": nil, "default": nil}}}, `{"properties":{"a":{"default":null,"enum":[null]}},"type":"object"}`},
		"invalid":  {invalid, `{"properties":{"a":{"type":"string"},"b":{"items":{"type":"string"},"type":"array"},"c":{"description":"d","minimum":1.5},"default":{"items":{},"type":"array"},"enum":{"default":{"type":"array"},"type":"object"}},"type":"object"}`},
		"required": {map[string]any{"required": []any{"b", nil, "a", "b", 3}}, `{"properties":{},"required":["a","b"],"type":"object"}`},
		"one of a list": {map[string]any{"properties": map[string]any{"a": map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "nope", "title": "b"}}}}},
			`{"properties":{"a":{"anyOf":[{"type":"string"},{"title":"b"}]}},"type":"object"}`},
		"capitals":   {dialect(`{"a":{"type":"STRING"},"b":{"type":["INTEGER","NULL"]}}`), `{"properties":{"a":{"type":"string"},"b":{"type":["integer","null"]}},"type":"object"}`},
		"tuples":     {dialect(`{"a":{"type":"array","items":[{"type":"string"},{"type":"NUMBER"}]},"b":{"type":"array","prefixItems":[{"type":"array"}],"items":false}}`), `{"properties":{"a":{"items":{"anyOf":[{"type":"string"},{"type":"number"}]},"type":"array"},"b":{"items":{"items":{},"type":"array"},"type":"array"}},"type":"object"}`},
		"old bounds": {dialect(`{"a":{"anyOf":[{"type":"integer","minimum":0,"exclusiveMinimum":true},{"type":"null"}]}}`), `{"properties":{"a":{"anyOf":[{"minimum":0,"type":"integer"},{"type":"null"}]}},"type":"object"}`},
		"no values":  {map[string]any{"properties": map[string]any{"a": map[string]any{"enum": []any{}}}}, `{"properties":{"a":{}},"type":"object"}`},
		"references": {references, `{"$defs":{"x":{"type":"string"},"y":{},"z":{}},"properties":{"a":{"$ref":"#/$defs/x"},"b":{"title":"b"},"c":{"items":{"$ref":"#"},"type":"array"},"d":{},"e":{"anyOf":[{},true]}},"type":"object"}`},
		"only a reference": {map[string]any{"$ref": "#/definitions/a~1b", "definitions": map[string]any{"a/b": map[string]any{"type": "object", "properties": map[string]any{"c": map[string]any{}}}}},
			`{"definitions":{"a/b":{"properties":{"c":{}},"type":"object"}},"properties":{"c":{}},"type":"object"}`},
		"patterns": {map[string]any{"properties": map[string]any{"a": map[string]any{"pattern": "^(?!b)"}, "b": map[string]any{"pattern": "^b"}}}, `{"properties":{"a":{"pattern":"^(?!b)"},"b":{"pattern":"^b"}},"type":"object"}`},
		"or null":  {map[string]any{"type": []any{"object", "null"}}, `{"properties":{},"type":"object"}`},
		"items":    {map[string]any{"properties": map[string]any{"a": map[string]any{"type": "array"}, "b": map[string]any{"type": []any{"array", "null"}}}}, `{"properties":{"a":{"items":{},"type":"array"},"b":{"items":{},"type":["array","null"]}},"type":"object"}`},
		"any of": {map[string]any{"description": "d", "properties": map[string]any{"a": true}, "anyOf": []any{map[string]any{"properties": map[string]any{"b": true}, "required": []any{"b"}}}},
			`{"description":"d\nThe arguments must also match: {\"anyOf\":[{\"properties\":{\"b\":{}},\"required\":[\"b\"]}]}","properties":{"a":{},"b":{}},"type":"object"}`},
		"all of":       {map[string]any{"required": []any{"a"}, "allOf": []any{map[string]any{"required": []any{"b", "a"}}}}, `{"description":"The arguments must also match: {\"allOf\":[{\"required\":[\"b\",\"a\"]}]}","properties":{},"required":["b","a"],"type":"object"}`},
		"large any of": {map[string]any{"anyOf": []any{map[string]any{"const": strings.Repeat("a", 5000)}}}, "error: its schema has anyOf at the top, which providers do not take"},
		"a list":       {map[string]any{"type": "array"}, "error: its arguments are not an object"},
		"no object":    {true, "error: its schema is not an object"},
		"many levels":  {deep, "error: its schema has more than 32 levels"},
		"large":        {map[string]any{"description": strings.Repeat("a", 70_000)}, "error: its schema has more than 64 KiB"},
	} {
		got, err := tools.FitSchema(c.schema)
		if err != nil {
			got = json.RawMessage("error: " + err.Error())
		}
		compare.Equal(t, name, c.want, string(got))
	}
}

// What OpenAPI 3.0 calls nullable may be null for the model, too.
func TestNullable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ schema, want string }{
		"a type":         {"type: string, nullable: true", `{"type":["string","null"]}`},
		"an enumeration": {"type: string, nullable: true, enum: [a, b]", `{"enum":["a","b",null],"type":["string","null"]}`},
		"with null":      {"type: string, nullable: true, enum: [a, null]", `{"enum":["a",null],"type":["string","null"]}`},
		"no type":        {"nullable: true, enum: [a]", `{"anyOf":[{"enum":["a"]},{"type":"null"}]}`},
		"a reference":    {"nullable: true, allOf: [{type: object}]", `{"anyOf":[{"allOf":[{"type":"object"}]},{"type":"null"}]}`},
		"anything":       {"nullable: true", `{}`},
		"several types":  {"type: [string, 'null'], nullable: true", `{"type":["string","null"]}`},
		"not":            {"type: string, nullable: false", `{"type":"string"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool, fault := items(t, "/a", "parameters: [{name: p, in: query, schema: {"+c.schema+"}}]", core.ToolDefinition{})
			must.True(t, fault == nil, "got %+v", fault)
			want := `{"properties":{"p":` + c.want + `},"required":[],"type":"object"}`
			compare.Equal(t, "parameters", want, string(tool.Definition.Parameters))
		})
	}
}

// What stands beside a reference is kept, and a name may be escaped in it.
func TestReferences(t *testing.T) {
	t.Parallel()
	tool, fault := items(t, "/a", `parameters: [{name: p, in: query, schema: {$ref: '#/components/schemas/Page%3CUser%3E', description: of users, default: 1}}]
components:
  schemas:
    Page<User>: {type: integer, description: any}
`, core.ToolDefinition{})
	must.True(t, fault == nil, "got %+v", fault)
	const want = `{"properties":{"p":{"default":1,"description":"of users","type":"integer"}},"required":[],"type":"object"}`
	compare.Equal(t, "parameters", want, string(tool.Definition.Parameters))
}
