package openapi_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"bobbin/app/api/openapi"
	"bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
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

// named is a setting with its default in brackets, as documents tell it: `files.bytes` (20 MiB).
var named = regexp.MustCompile("`([a-z][a-z_]*\\.[a-z_.]+)` \\(([0-9][0-9.,]* ?(?:KiB|MiB|GiB|s|min|minutes|h|days|d))\\b")

// What documents say that a setting is by default is its default.
func TestDefaultsOfDocuments(t *testing.T) {
	t.Parallel()
	defaults := map[string]string{}
	for _, k := range config.Keys() {
		defaults[k.Name] = plainNumber(k.Default)
	}
	files := must.Get(filepath.Glob("../../docs/*.md"))(t)
	checked := 0
	for _, name := range append(files, "../../README.md", "../../app/web/ui/openapi.json") {
		raw := must.Get(os.ReadFile(name))(t)
		for _, m := range named.FindAllStringSubmatch(string(raw), -1) {
			want, known := defaults[m[1]]
			if !known {
				continue
			}
			checked++
			compare.Equal(t, filepath.Base(name)+": "+m[1], want, plainNumber(m[2]))
		}
	}
	if checked < 10 {
		t.Errorf("got %d defaults in the documents, want those that are there", checked)
	}
}

// units are the ways in which documents and settings write one unit.
var units = strings.NewReplacer(",", "", " ", "", "minutes", "m", "min", "m", "days", "d", "m0s", "m", "h0m0s", "h")

func plainNumber(text string) string { return units.Replace(text) }

// API.md: what a second request with the same Idempotency-Key does, on every operation that is a POST or PATCH. Those
// of OpenAI's are in app/api and tests/conformance.
func TestRepeatedKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.MigratedSQLiteURL(t))
	ada, kim, checked := w.settle("ada"), w.user("kim"), 0
	instruction := w.must(ada, "POST", "/api/v1/sessions/"+ada.ids.pick("session", 0)+"/standing-instructions", map[string]any{"text": "Be brief."})["id"].(string)
	ada.ids.add("standing instruction", instruction)
	for _, op := range operations() {
		if op.Method() != http.MethodPost && op.Method() != http.MethodPatch || slices.Contains([]string{"decideApproval", "fixSlackPost", "retryDelivery"}, op.ID) { // there is none
			continue
		}
		path, body, headers := pathOf(op, ada.ids), w.bodyOf(op, ops.Field{}, ""), []string{"Prefer: respond-async", "Idempotency-Key: key-" + op.ID}
		who := ada
		switch op.ID {
		case "uploadFile":
			body = fileForm(t, "a.txt", "text")
		case "searchMemories":
			body = map[string]any{"query": "word"}
		case "createDeletion":
			who, body = kim, map[string]any{"user_id": "u-" + kim.marker} // with the scope for it
		}
		status, first := w.do(who, op.Method(), path, body, headers...)
		again, second := w.do(who, op.Method(), path, body, headers...)
		same := status < 300 && status == again && string(first) == string(second)
		switch asks := slices.Contains([]string{"sendMessage", "editMessage", "regenerateMessage"}, op.ID); {
		case op.Scope == core.CanDelete:
			same = again == http.StatusUnprocessableEntity && !w.replayed
		case asks: // the key is its client_message_id, and the run goes on
			run, _, _ := strings.Cut(string(first), `,"session_id"`)
			same = status < 300 && strings.HasPrefix(string(second), run) && strings.Contains(string(second), `"key-`+op.ID) && !w.replayed
			w.do(who, op.Method(), path, body, headers[1]) // waits for the run's end: the session is not busy then
		case op.Scope == core.CanRead:
			same = status < 300 && status == again && !w.replayed
		default:
			same = same && w.replayed
		}
		if checked++; !same {
			t.Errorf("%s: got %d %.300s, and then %d %.300s, replayed %t", op.Route, status, first, again, second, w.replayed)
		}
	}
	appended, body := "/api/v1/sessions/"+ada.ids.pick("session", 0)+"/messages", map[string]any{"content": "hi", "run": false}
	status, first := w.do(ada, "POST", appended, body, "Idempotency-Key: append")
	if again, second := w.do(ada, "POST", appended, body, "Idempotency-Key: append"); status != http.StatusCreated || again != status || string(first) != string(second) {
		t.Errorf("a message without a run: got %d %.300s, and then %d %.300s", status, first, again, second)
	}
	if checked < 15 {
		t.Errorf("got %d operations, want at least 15", checked)
	}
}
