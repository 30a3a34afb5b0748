package openapi_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"bobbin/app/api/openapi"
	"bobbin/tests/compare"
	"bobbin/tests/document"
	"bobbin/tests/must"
)

// TestDocumentIsOpenAPI: the document is valid OpenAPI 3.1, by the schema of the
// OpenAPI Initiative and by that of JSON Schema 2020-12.
func TestDocumentIsOpenAPI(t *testing.T) {
	t.Parallel()
	value := must.Get(document.Decode(openapi.New().JSON))(t)
	meta := must.Get(document.Decode(must.Get(os.ReadFile("testdata/oas-3.1-schema-2022-10-07.json"))(t)))(t)
	c := jsonschema.NewCompiler()
	const at = "https://spec.openapis.org/oas/3.1/schema/2022-10-07"
	must.Do(t, c.AddResource(at, meta))
	compare.Error(t, "the document is not OpenAPI 3.1", nil, must.Get(c.Compile(at))(t).Validate(value))
	dialect := must.Get(jsonschema.NewCompiler().Compile("https://json-schema.org/draft/2020-12/schema"))(t)
	for name, s := range value.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any) {
		compare.Error(t, fmt.Sprintf("schema %s", name), nil, dialect.Validate(s))
	}
}

// TestOperations: every operation has a name of its own and the parameters of its path, and its
// examples are what it asks for.
func TestOperations(t *testing.T) {
	t.Parallel()
	d := must.Get(document.Load())(t)
	names := map[string]bool{}
	for _, op := range d.Operations {
		if op.ID == "" || names[op.ID] {
			t.Errorf("%s %s: operationId %q is empty or taken", op.Method, op.Path, op.ID)
		}
		names[op.ID] = true
		rest := op.Path
		for _, p := range op.Params {
			if p.In == "path" && !strings.Contains(rest, "{"+p.Name+"}") {
				t.Errorf("%s: the path has no {%s}", op.ID, p.Name)
			}
			rest = strings.Replace(rest, "{"+p.Name+"}", "", 1)
		}
		if strings.Contains(rest, "{") {
			t.Errorf("%s: a parameter of %s is not described", op.ID, op.Path)
		}
		for media, schema := range op.Body {
			if example, ok := schema.Example.(map[string]any); ok && schema.Check(example) != nil {
				t.Errorf("%s: example of %s: %v", op.ID, media, schema.Check(example))
			}
		}
	}
}
