package openapi_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"bobbin/app/core/config"
	"bobbin/tests/must"
)

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
			if got := plainNumber(m[2]); got != want {
				t.Errorf("%s: %q says %q of %s, which is %q", filepath.Base(name), m[0], got, m[1], want)
			}
		}
	}
	if checked < 10 {
		t.Errorf("got %d defaults in the documents, want those that are there", checked)
	}
}

// units are the ways in which documents and settings write one unit.
var units = strings.NewReplacer(",", "", " ", "", "minutes", "m", "min", "m", "days", "d", "m0s", "m", "h0m0s", "h")

func plainNumber(text string) string { return units.Replace(text) }
