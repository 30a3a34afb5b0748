package config_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core/config"
	"bobbin/docs"
	"bobbin/tests/must"
)

var update = flag.Bool("update", false, "write docs/CONFIGURATION.md anew")

// reference is the file that documents the keys.
const reference = "../../../docs/CONFIGURATION.md"

// TestReference: docs/CONFIGURATION.md documents every key, and nothing else, and says what it means.
// Run with -update to write the other columns anew.
func TestReference(t *testing.T) {
	t.Parallel()
	data := must.Get(os.ReadFile(reference))(t)
	page := string(data)
	before, after, ok := strings.Cut(page, "\n## Keys\n")
	text, rest, ok2 := strings.Cut(after, "\n|")
	_, rest, ok3 := strings.Cut("|"+rest, "\n\n")
	if !ok || !ok2 || !ok3 {
		t.Fatalf("%s has no table of keys", reference)
	}
	var b strings.Builder
	b.WriteString("| key | flag | environment | default | meaning |\n|---|---|---|---|---|\n")
	for _, k := range config.Keys() {
		value := "empty"
		switch {
		case strings.Contains(k.Default, " "):
			value = k.Default
		case k.Default != "":
			value = "`" + k.Default + "`"
		}
		flag := "–"
		if k.Flag() != "" {
			flag = "`--" + k.Flag() + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s |\n", k.Name, flag, k.Env(), value, k.Meaning)
	}
	page = before + "\n## Keys\n" + text + "\n" + b.String() + "\n" + rest
	if *update {
		must.Do(t, os.WriteFile(reference, []byte(page), 0o644))
	} else if page != string(data) {
		t.Errorf("%s is not what the code says; run: go test ./app/core/config -run TestReference -update", reference)
	}
	if !strings.Contains(page, "it may set only these keys: "+openKeys()+", ") {
		t.Errorf("%s does not say that a file that nobody named may set %s", reference, openKeys())
	}
	_, example, _ := strings.Cut(page, "## Example\n\n```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	if _, _, err := (source{file: example}).load(t); err != nil || example == "" {
		t.Errorf("the example: %v", err)
	}
}

// openKeys returns the keys that a file which nobody named may set.
func openKeys() string {
	var names []string
	for _, k := range config.Keys() {
		section, _, nested := strings.Cut(k.Name, ".")
		name := "`" + k.Name + "`"
		if nested {
			name = "`" + section + ".*`"
		}
		if k.Open && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// Every field of Config can be set: no field without a key, no key twice.
func TestKeysCoverConfig(t *testing.T) {
	t.Parallel()
	if got, want := len(config.Keys()), leaves(reflect.TypeFor[config.Config]()); got != want {
		t.Errorf("keys: got %d, want one for each of the %d fields", got, want)
	}
	_, table, _ := strings.Cut(docs.Configuration, "\n## An entry of models\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for field := range reflect.TypeFor[config.Model]().Fields() {
		if !strings.Contains(table, "\n| `"+field.Tag.Get("key")+"` | ") {
			t.Errorf("%s does not say what %q of a model means", reference, field.Tag.Get("key"))
		}
	}
	if got, want := strings.Count(table, "\n| `"), reflect.TypeFor[config.Model]().NumField(); got != want {
		t.Errorf("%s has %d keys of a model, want %d", reference, got, want)
	}
	seen := map[string]bool{}
	for _, k := range config.Keys() {
		for _, name := range []string{k.Name, k.Env(), "--" + k.Flag()} {
			if seen[name] && name != "--" {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
		if k.Meaning == "" {
			t.Errorf("%s has no meaning", k.Name)
		}
	}
	if !seen["BOBBIN_AUTH_KEYS"] || !seen["BOBBIN_DATABASE_URL"] || !seen["BOBBIN_CONTEXT_USAGE_THRESHOLD"] || !seen["--database-url"] {
		t.Errorf("names: got %v, want those of the configuration contract", seen)
	}
}

// leaves counts the fields that are not sections.
func leaves(typ reflect.Type) int {
	n := 0
	for field := range typ.Fields() {
		if field.Type.Kind() == reflect.Struct && field.Type != reflect.TypeFor[config.Secret]() {
			n += leaves(field.Type)
			continue
		}
		n++
	}
	return n
}
