package tools_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bobbin/app/core"
)

// A body is sent in the type that the document names: JSON, or a form with the styles of its
// properties. What cannot be sent is refused if it is required.
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
		"form":              {"application/x-www-form-urlencoded: {schema: {}}", value, "application/x-www-form-urlencoded a=x%26y%20z&b=1&b=2&c=%7B%22d%22%3Atrue%7D"},
		"form with styles": {"application/x-www-form-urlencoded: {schema: {}, encoding: {b: {explode: false}, c: {style: deepObject, explode: true}}}", value,
			"application/x-www-form-urlencoded a=x%26y%20z&b=1,2&c%5Bd%5D=true"},
		"form of a list": {"application/x-www-form-urlencoded: {schema: {}}", `{"body":[1]}`, `error: the argument "body" must be an object: it is sent as a form`},
		"another style":  {"application/x-www-form-urlencoded: {schema: {}, encoding: {b: {style: matrix}}}", value, `refused: operation listItems: the style "matrix" of b in its body is not supported`},
		"another type":   {"multipart/form-data: {schema: {}}", value, "refused: operation listItems: its body is neither JSON nor a form, which is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document := fmt.Sprintf(listItems, "/a", "requestBody: {required: true, content: {"+c.content+"}}")
			got, fault := openAPI(t, strings.Replace(document, "get:", "post:", 1), core.ToolDefinition{Operations: []string{"listItems"}, Server: server.URL})
			var text string
			if fault != nil {
				text = "refused: " + fault.Problem
			} else if answer, err := callTool(t, got.Tools[0], c.arguments); err != nil {
				text = "error: " + err.Error()
			} else {
				text = answer
			}
			if text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}
