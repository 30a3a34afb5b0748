package openapi_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"bobbin/app/api/openapi"
	"bobbin/tests/document"
)

// load reads the document.
func load(t testing.TB) *document.Document {
	t.Helper()
	d, err := document.Load()
	if err != nil {
		t.Fatalf("load the document: %v", err)
	}
	return d
}

// TestDocumentIsOpenAPI: the document is valid OpenAPI 3.1, by the schema of the
// OpenAPI Initiative and by that of JSON Schema 2020-12.
func TestDocumentIsOpenAPI(t *testing.T) {
	t.Parallel()
	built, err := openapi.New()
	if err != nil {
		t.Fatal(err)
	}
	value, err := document.Decode(built.JSON())
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("testdata/oas-3.1-schema-2022-10-07.json")
	if err != nil {
		t.Fatal(err)
	}
	meta, err := document.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	const at = "https://spec.openapis.org/oas/3.1/schema/2022-10-07"
	if err := c.AddResource(at, meta); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("the document is not OpenAPI 3.1: %v", err)
	}
	schemas := value.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any)
	dialect, err := jsonschema.NewCompiler().Compile("https://json-schema.org/draft/2020-12/schema")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range schemas {
		if err := dialect.Validate(s); err != nil {
			t.Errorf("schema %s: %v", name, err)
		}
	}
}

// TestOperations: every operation has a name of its own, a summary and a tag; its path
// has the parameters that it says; and its examples are what it asks for.
func TestOperations(t *testing.T) {
	t.Parallel()
	d := load(t)
	names := map[string]bool{}
	for _, op := range d.Operations {
		if op.ID == "" || names[op.ID] {
			t.Errorf("%s %s: operationId %q is empty or taken", op.Method, op.Path, op.ID)
		}
		names[op.ID] = true
		inPath := 0
		for _, p := range op.Params {
			if p.In == "path" && !strings.Contains(op.Path, "{"+p.Name+"}") {
				t.Errorf("%s: the path has no {%s}", op.ID, p.Name)
			}
			if p.In == "path" {
				inPath++
			}
		}
		if want := strings.Count(op.Path, "{"); inPath != want {
			t.Errorf("%s: got %d parameters of the path, want %d", op.ID, inPath, want)
		}
		raw := d.Raw["paths"].(map[string]any)[op.Path].(map[string]any)[strings.ToLower(op.Method)].(map[string]any)
		if raw["summary"] == nil || raw["tags"] == nil {
			t.Errorf("%s: summary or tags are missing", op.ID)
		}
		body, _ := raw["requestBody"].(map[string]any)
		content, _ := body["content"].(map[string]any)
		for media, m := range content {
			example, ok := m.(map[string]any)["example"]
			if !ok {
				continue
			}
			if err := op.Body[media].Check(example); err != nil {
				t.Errorf("%s: example of %s: %v", op.ID, media, err)
			}
		}
	}
}

// TestGoldenFiles: what tests/contract holds byte by byte is what the document says.
func TestGoldenFiles(t *testing.T) {
	t.Parallel()
	d := load(t)
	files, err := filepath.Glob("../contract/testdata/*.txt")
	if err != nil || len(files) < 50 {
		t.Fatalf("got %d golden files and %v, want at least 50", len(files), err)
	}
	for _, file := range files {
		if filepath.Base(file) == "session_export.txt" {
			continue // its file is a stand-in; tests/e2e exports real ones
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(file) == "events.txt" {
				checkFrames(t, d.Find("GET", "/api/v1/runs/x/events").Answers[200], data)
				return
			}
			checkGolden(t, d, data)
		})
	}
}

// checkGolden checks a file of tests/contract: request, ---, status, header, body, and each call of a service after ---.
func checkGolden(t *testing.T, d *document.Document, data []byte) {
	t.Helper()
	asked, told, _ := bytes.Cut(data, []byte("\n---\n"))
	told, _, _ = bytes.Cut(told, []byte("\n---\n")) // the calls of the services
	line, rest, _ := strings.Cut(string(asked), "\n")
	method, target, _ := strings.Cut(line, " ")
	head, sent, _ := strings.Cut(rest, "\n")
	request, err := http.NewRequest(method, target, strings.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if name, value, ok := strings.Cut(head, ": "); ok && !strings.Contains(name, `"`) {
		request.Header.Set(name, value)
		_, sent, _ = strings.Cut(sent, "\n")
	}
	top, body, _ := bytes.Cut(told, []byte("\n\n"))
	lines := strings.Split(string(top), "\n")
	status, err := strconv.Atoi(lines[0])
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ": ")
		header.Set(name, value)
	}
	op := d.Find(method, request.URL.Path)
	switch {
	case op == nil && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed):
		op = d.Find("GET", "/api/v1/sessions/x") // any: a problem is a problem
		status = http.StatusNotFound
	case op == nil:
		t.Fatalf("%s %s is not in the document", method, target)
	}
	if status < 300 {
		if err := op.CheckRequest(request, []byte(strings.TrimSpace(sent))); err != nil {
			t.Errorf("request: %v", err)
		}
	}
	if header.Get("Content-Type") == "text/event-stream" {
		checkFrames(t, op.Answers[status], body)
	}
	if err := op.CheckAnswer(status, header, body); err != nil {
		t.Errorf("answer: %v", err)
	}
}

func checkFrames(t *testing.T, answer document.Answer, data []byte) {
	t.Helper()
	for frame := range bytes.SplitSeq(data, []byte("\n\n")) {
		if name, data, ok := document.Frame(frame); ok {
			if err := answer.CheckEvent(name, data); err != nil {
				t.Error(err)
			}
		}
	}
}
