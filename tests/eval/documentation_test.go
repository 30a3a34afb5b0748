package eval_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"bobbin/app/eval"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// docs is the folder of the documentation.
var docs = filepath.Join("..", "..", "docs")

// The table in docs/EVALUATION.md is the one of the sample.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	file := filepath.Join(docs, "EVALUATION.md")
	text := must.Get(os.ReadFile(file))(t)
	table := must.Get(os.ReadFile(filepath.Join("testdata", "coding.txt")))(t)
	block := regexp.MustCompile("(?s)```text\n.*?```")
	if len(block.FindAll(text, -1)) != 1 {
		t.Fatalf("%s: want one block of text, which is the table", file)
	}
	golden(t, file, block.ReplaceAllLiteral(text, []byte("```text\n"+string(table)+"```")))
	for _, s := range eval.List() {
		compare.Contains(t, fmt.Sprintf("%s: want a row of the sample %s", file, s.Name), "| `"+s.Name+"` |", string(text))
	}
}

// Every field of --json is in docs/CLI.md.
func TestFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile(filepath.Join(docs, "CLI.md")))(t)
	raw := must.Get(json.Marshal(evaluate(t, sample(t, "incident", "window"))))(t)
	var report any
	must.Do(t, json.Unmarshal(raw, &report))
	names := fields(report)
	if len(names) < 40 {
		t.Fatalf("got %d fields, want all of the report: %v", len(names), names)
	}
	for _, name := range names {
		if !regexp.MustCompile("`" + name + "(\\[\\])?`").Match(text) {
			t.Errorf("docs/CLI.md does not tell of the field %s of --json", name)
		}
	}
}

// fields returns the names of all members of a JSON value, each once, sorted.
func fields(v any) []string {
	var names []string
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			names = append(names, fields(item)...)
		}
	case map[string]any:
		for name, value := range v {
			names = append(append(names, name), fields(value)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
