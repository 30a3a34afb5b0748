package config_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"bobbin/app/core/config"
)

var update = flag.Bool("update", false, "write docs/CONFIGURATION.md anew")

// reference is the file that documents the keys.
const reference = "../../../docs/CONFIGURATION.md"

// TestReference: docs/CONFIGURATION.md documents every key, and nothing else. Run
// with -update to write it anew.
func TestReference(t *testing.T) {
	t.Parallel()
	want := document()
	if *update {
		if err := os.WriteFile(reference, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the code says; run: go test ./app/core/config -run TestReference -update", reference)
	}
}

// document returns the text of docs/CONFIGURATION.md.
func document() string {
	var b strings.Builder
	b.WriteString(`# Configuration

Every setting has a default: nothing has to be configured. A setting is taken from the first of these that has it:

1. the command line flag,
2. the environment variable (an empty one counts as none),
3. ` + "`bobbin.yaml`" + `: the file that ` + "`--config`" + ` or ` + "`" + config.FileVariable + "`" + ` names, else the one in the working directory, else
   ` + "`bobbin/bobbin.yaml`" + ` in the user's configuration directory (` + "`~/.config`" + ` on Linux),
4. the default.

` + "`bobbin config show`" + ` prints what is in force and where each value comes from, secrets masked. A key that does not
exist, a value of the wrong type, and settings that contradict each other are errors at start, all of them at once.

Times have a unit (` + "`30s`, `5m`, `1h30m`" + `). Sizes are bytes or have a unit (` + "`512KiB`, `1MiB`, `10MB`" + `). Lists are
YAML lists in the file and separated by commas in variables (` + "`models`" + `: YAML or JSON there too). API keys have no flag:
other users of the machine can read a command line.

## Keys

| key | flag | environment | default | meaning |
|---|---|---|---|---|
`)
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
	b.WriteString(`
## An entry of models

An entry extends the built-in table of models, or overrides it: agents call the model by ` + "`name`" + `, and what an entry
leaves out is as it would be for the provider's model of that name.

| key | meaning |
|---|---|
`)
	for _, k := range config.ModelKeys() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", k.Name, k.Meaning)
	}
	b.WriteString(`
Costs are counted with the prices that are written here; none are built in, as providers change theirs. Calls of models
without prices are counted without costs, and ` + "`bobbin usage`" + ` says how many there were. Without prices of its own the cached part
of a prompt is counted at ` + "`input_price`" + `: that is too much for reads, and may be too little for writes.

## An entry of auth.limits

` + "`key`" + ` is the name of an API key, or ` + "`local`" + ` for this machine's own user where no key is used; ` + "`usd_per_day`" + ` and ` + "`tokens_per_day`" + `
bound what is called for it between two midnights of UTC, summaries and titles included; 0 or nothing = no limit.
A message that comes after it is reached is refused until midnight, and a run at work ends before its next model call. Calls that
are under way finish, so that the limit may be passed by what was under way at that moment: one call for each of the runs at work
(` + "`limits.concurrent_runs`" + `). ` + "`usd_per_day`" + ` sees only calls of models that have prices.
`)
	b.WriteString("\n## Example\n\n```yaml\n" + example + "```\n\n" + `## Keys of providers

They are not settings of Bobbin but of the providers, and are read from the variables that their own tools use:
` + "`OPENAI_API_KEY`, `OPENAI_BASE_URL`, `ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`, `GEMINI_API_KEY`, `OLLAMA_HOST`" + `. Without any
of them and without a local Ollama the offline demonstration model answers.
`)
	return b.String()
}

const example = `addr: 127.0.0.1:8080
database:
  url: postgres://bobbin:secret@localhost:5432/bobbin
default_llm: fast
context_usage_threshold: 0.8
models:
  - name: fast
    provider: openai
    model: gpt-4o-mini
  - name: house               # a server of one's own
    provider: openai
    model: qwen2.5-14b
    base_url: http://localhost:8000/v1
    api_key_env: HOUSE_KEY
    context_window: 32768
    max_output_tokens: 4096
auth:
  keys:
    - {name: alice, secret: "a long random text"}
  limits:
    - {key: alice, usd_per_day: 5, tokens_per_day: 2000000}
log:
  level: info
limits:
  run_time: 10m
`

// The example of the documentation is valid.
func TestReferenceExample(t *testing.T) {
	t.Parallel()
	if _, _, err := (source{file: example}).load(t); err != nil {
		t.Errorf("the example: %v", err)
	}
}

// Every field of Config can be set: no field without a key, no key twice.
func TestKeysCoverConfig(t *testing.T) {
	t.Parallel()
	if got, want := len(config.Keys()), leaves(reflect.TypeFor[config.Config]()); got != want {
		t.Errorf("keys: got %d, want one for each of the %d fields", got, want)
	}
	if got, want := len(config.ModelKeys()), leaves(reflect.TypeFor[config.Model]()); got != want {
		t.Errorf("keys of a model: got %d, want one for each of the %d fields", got, want)
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
