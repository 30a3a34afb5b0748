package licenses_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"bobbin/licenses"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// Every module that is linked into the program, and every package in its web page, has its license here, in the
// version that is in it.
func TestNoticesAreComplete(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "bobbin")
	out := must.Get(cmd.Output())(t)
	modules := strings.Fields(strings.ReplaceAll(string(out), " ", "@"))
	must.True(t, len(modules) >= 100, "got %d packages of others, want what the program is made of", len(modules))
	var packages []struct{ Name, Version, Text string }
	page, err := os.ReadFile("../app/web/dist/assets/licenses.json")
	if err == nil {
		err = json.Unmarshal(page, &packages)
	}
	must.True(t, err == nil && len(packages) >= 5, "the page's licenses: %d packages, %v", len(packages), err)
	listed := map[string]bool{}
	for line := range strings.Lines(licenses.ThirdParty()) {
		if name, _, ok := strings.Cut(line, ": "); ok {
			listed[name] = true
		}
	}
	missing := map[string]bool{}
	for _, module := range modules {
		if name := strings.Replace(module, "@", " ", 1); !listed[name] {
			missing[name] = true
		}
	}
	for _, p := range packages {
		if first, _, _ := strings.Cut(p.Text, "\n"); !listed[p.Name+" "+p.Version] || !strings.Contains(licenses.ThirdParty(), strings.TrimSpace(first)) {
			missing[p.Name] = true
		}
	}
	compare.True(t, len(missing) == 0 && listed["Go, its runtime and standard library"], "%v are not in THIRD_PARTY_NOTICES; run scripts/notices", missing)
}
