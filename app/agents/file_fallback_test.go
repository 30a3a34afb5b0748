package agents_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/must"
)

// Fallback models, and models of summaries and notes, that are not known are refused when the
// agents are loaded, with file, line and column. One that only lacks its key here is not.
func TestFallbackModelsAreChecked(t *testing.T) {
	t.Parallel()
	known := agents.KnownParts{Model: func(name string) (llm.Info, error) {
		if strings.HasPrefix(name, "gpt-") {
			return llm.Info{Name: name}, nil
		}
		if name == "keyless" {
			return llm.Info{Name: name}, core.Errorf(core.ErrInvalid, "model keyless needs an API key: set KEY")
		}
		return llm.Info{}, core.Errorf(core.ErrNotFound, "model %q is not known: use gpt-4o", name)
	}}
	for name, c := range map[string]struct{ line, want string }{
		"known":      {"fallback_models: [gpt-4o-mini, gpt-5]", ""},
		"none":       {"fallback_models: []", ""},
		"unknown":    {"fallback_models: [gpt-4o-mini, clod]", `a.yaml:3:32: fallback model "clod" is not known: use gpt-4o`},
		"twice":      {"fallback_models: [gpt-5, gpt-5]", `a.yaml:3:26: fallback model "gpt-5" is there twice`},
		"the itself": {"fallback_models: [gpt-4o]", `a.yaml:3:19: fallback model "gpt-4o" is the model itself; name another, or none`},
		"empty":      {"fallback_models: ['']", `a.yaml:3:19: fallback_models[0] is empty; remove it`},
		"of loops":   {"compaction: {summary_model: gpt-5}", ""}, // L1
		"no loops":   {"compaction: {summary_model: clod}", `a.yaml:3:14: compaction.summary_model: model "clod" is not known: use gpt-4o`},
		"summaries":  {"context: {summary_model: gpt-5}", ""},
		"no such":    {"context: {policy: budget, summary_model: clod}", `a.yaml:3:27: context.summary_model: model "clod" is not known: use gpt-4o`},
		"keyless":    {"fallback_models: [keyless]\ncontext: {summary_model: keyless}\ncompaction: {summary_model: keyless}", ""},
		"as others":  {"compaction: {summary_model: ''}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := "name: a\nmodel: gpt-4o\n" + c.line + "\n"
			must.Do(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(file), 0o600))
			_, err := agents.LoadCatalog(dir, known)
			got := ""
			if err != nil {
				got = strings.TrimPrefix(err.Error(), dir+string(filepath.Separator))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("fault (-want +got):\n%s", diff)
			}
		})
	}
}
