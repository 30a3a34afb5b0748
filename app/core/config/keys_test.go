package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core/config"
	"bobbin/docs"
	"bobbin/tests/compare"
	"bobbin/tests/golden"
	"bobbin/tests/must"
)

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
	must.True(t, ok && ok2 && ok3, "%s has no table of keys", reference)
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
	golden.Check(t, reference, page)
	compare.Contains(t, "the keys that a file that nobody named may set", "it may set only these keys: "+openKeys()+", ", page)
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
	compare.Equal(t, "keys: want one for each field", leaves(reflect.TypeFor[config.Config]()), len(config.Keys()))
	_, table, _ := strings.Cut(docs.Configuration, "\n## An entry of models\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for field := range reflect.TypeFor[config.Model]().Fields() {
		compare.Contains(t, "what the key of a model means", "\n| `"+field.Tag.Get("key")+"` | ", table)
	}
	compare.Equal(t, "documented keys of a model", reflect.TypeFor[config.Model]().NumField(), strings.Count(table, "\n| `"))
	seen := map[string]bool{}
	for _, k := range config.Keys() {
		for _, name := range []string{k.Name, k.Env(), "--" + k.Flag()} {
			compare.True(t, !seen[name] || name == "--", "%s is there twice", name)
			seen[name] = true
		}
		compare.True(t, k.Meaning != "", "%s has no meaning", k.Name)
	}
	compare.True(t, seen["BOBBIN_AUTH_KEYS"] && seen["BOBBIN_DATABASE_URL"] && seen["BOBBIN_CONTEXT_USAGE_THRESHOLD"] && seen["--database-url"], "names: got %v, want those of the configuration contract", seen)
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

// A key may be told by its hash, so that the file need not hold the secret.
func TestKeysByHash(t *testing.T) {
	t.Parallel()
	key, secret := config.NewAPIKey("web")
	other, otherSecret := config.NewAPIKey("web")
	compare.True(t, secret != otherSecret && !key.Secret.Equal(other.Secret) && len(secret) >= 40, "two keys: %q, %q", secret, otherSecret)
	plain := config.APIKey{Name: "web", Secret: config.NewSecret(secret)}
	want, _ := plain.Sum()
	if got, ok := key.Sum(); !ok || got != want || !key.Hashed() || plain.Hashed() {
		t.Errorf("sum of the hashed key: %x %v, want %x", got, ok, want)
	}
	load := func(keys string) error {
		_, _, err := config.Load(config.Options{Dir: t.TempDir(), UserDir: t.TempDir(), Env: func(name string) string {
			return map[string]string{"BOBBIN_AUTH_KEYS": keys}[name]
		}})
		return err
	}
	hash := key.Secret.Reveal()
	compare.Error(t, "load", nil, load("web:"+hash+",mail:"+other.Secret.Reveal()))
	for keys, says := range map[string]string{
		"web:" + hash + ",mail:" + secret: "same secret",
		"web:sha256:12":                   "is not one",
		"web:" + hash + "00":              "is not one",
		"web:sha256:":                     "is not one",
		"web:" + hash[:len(hash)-1] + "g": "is not one",
	} {
		err := load(keys)
		compare.True(t, err != nil && strings.Contains(err.Error(), says), "%s: got %v, want %q", keys, err, says)
		compare.True(t, err == nil || !strings.Contains(err.Error(), secret), "the error holds the secret: %v", err)
	}
}

// FuzzLoad: whatever the file, Load answers with valid settings or says what is
// wrong.
func FuzzLoad(f *testing.F) {
	for _, file := range []string{"default_llm: a\nmodels: [{name: a, provider: demo}]\n", "addr: [", "a: &a [*a]", "limits: {run_time: 1s, <<: {x: y}}", "models:\n- *x\n", "? {a: b}\n: c\n", "auth.keys: [[a]]\n", "log: &l {level: info}\nnats: *l\n", "addr: !!binary aGk=\n", "limits.queued_runs: 99999999999999999999\n"} {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file string) {
		path := filepath.Join(t.TempDir(), "bobbin.yaml")
		must.Do(t, os.WriteFile(path, []byte(file), 0o600))
		got, _, err := config.Load(config.Options{File: path, Env: func(string) string { return "" }})
		if err != nil {
			return
		}
		compare.Error(t, "Load let pass what is not valid", nil, got.Validate())
	})
}

// A variable with a typing error is not ignored in silence.
func TestCheckEnvironment(t *testing.T) {
	t.Parallel()
	got := config.CheckEnvironment([]string{
		"HOME=/root", "BOBBIN_ADDR=:1", "BOBBIN_ADRR=:1", "BOBBIN_URL=http://a", "BOBBIN_KEY=k", "BOBBIN_CONFIG=x", "BOBBIN_TEST_LONG=1", "BOBBIN_QQQQQQQQQ=",
	})
	want := []string{
		"the environment variable BOBBIN_ADRR is no setting; did you mean BOBBIN_ADDR?",
		"the environment variable BOBBIN_QQQQQQQQQ is no setting; docs/CONFIGURATION.md lists them",
	}
	compare.Equal(t, "warnings", want, got)
}
