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

` + "`bobbin config show`" + ` prints the values in effect and where each comes from, with secrets masked. Unknown keys,
values of the wrong type, and settings that contradict each other are errors at startup, all reported together.

Times have a unit (` + "`30s`, `5m`, `1h30m`" + `). Sizes are bytes or have a unit (` + "`512KiB`, `1MiB`, `10MB`" + `). Lists are
YAML lists in the file and comma-separated in variables (` + "`models`" + `: YAML or JSON there too). API keys have no flag:
other users of the machine can read command lines.

## A file that nobody named

A ` + "`bobbin.yaml`" + ` in the working directory may have come with the folder: a cloned repository, an unpacked archive. Unless ` + "`--config`" + ` or
` + "`BOBBIN_CONFIG`" + ` names it, it may set only these keys: ` + openKeys() + `, with these restrictions:

* ` + "`addr`" + ` must be a loopback address,
* ` + "`data_dir` and `agents_dir`" + ` must be in the folder, also where symbolic links lead,
* ` + "`models`" + ` must have no ` + "`base_url`, no `project` and no `api_key_env`" + `: these decide where conversations and environment variables are sent.

Everything else in it is an error at startup, which shows the command that trusts the file: ` + "`bobbin chat --config bobbin.yaml`" + `. So such a file cannot leak environment
variables, redirect conversations to its own address, open access or remove anything. It can still choose among the
providers whose keys you have (` + "`default_llm`" + `). The default folders ` + "`bobbin-data` and `agents`" + ` must not be links out of the working
directory either; ` + "`--data-dir` and `--agents-dir`" + ` name such folders. A foreign folder can also bring agents (` + "`agents/`" + `), which have their own instructions and read web pages if you
enabled ` + "`tools.fetch_url.enabled`" + ` for all folders, tools (` + "`tools/`" + `), which start programs and read environment variables if you set ` + "`tools.allow`" + ` for all folders, and a database (` + "`bobbin-data/`" + `): in such a folder name your own with ` + "`--data-dir`" + `. ` + "`bobbin serve` and `bobbin chat`" + ` say
at startup which file they use.

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

An entry extends the built-in table of models, or overrides it: agents call the model by ` + "`name`" + `, and omitted keys
have the values of the provider's model of that name.

| key | meaning |
|---|---|
`)
	for _, k := range config.ModelKeys() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", k.Name, k.Meaning)
	}
	b.WriteString(`
Costs are calculated with the prices configured here; none are built in, because providers change theirs. Calls of models
without prices are recorded without costs, and ` + "`bobbin usage`" + ` says how many there were. Without cache prices the cached part
of a prompt is priced at ` + "`input_price`" + `: that is too much for reads, and may be too little for writes.

## An entry of auth.limits

` + "`key`" + ` is the name of an API key, or ` + "`local`" + ` for this machine's own user when no key is used; ` + "`usd_per_day`" + ` and ` + "`tokens_per_day`" + `
limit its usage per UTC day, including summaries and titles; 0 or omitted = no limit.
Once a limit is reached, messages are rejected until midnight UTC, and an active run ends before its next model call. Calls in
progress finish, so usage may exceed the limit by the calls in progress at that moment: one for each active run
(` + "`limits.concurrent_runs`" + `). ` + "`usd_per_day`" + ` counts only calls of models that have prices: models without prices are rejected for that key
(422 ` + "`model_unpriced`" + `), startup and ` + "`bobbin doctor`" + ` name those that agents use. ` + "`tokens_per_day`" + ` counts the calls of every model.
`)
	b.WriteString("\n## Example\n\n```yaml\n" + example + "```\n\n" + `## Keys of providers

These are settings of the providers, not of Bobbin, and are read from the variables that the providers' own tools use:
` + "`OPENAI_API_KEY`, `OPENAI_BASE_URL`, `ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`, `GEMINI_API_KEY`, `OLLAMA_HOST`" + `. Without any
of them and without a local Ollama the offline demonstration model answers.

Claude on the clouds, without an entry: ` + "`bedrock/anthropic.claude-opus-5`, `vertex/claude-opus-5`" + `.

| | region and project | authorization |
|---|---|---|
| ` + "`bedrock`" + ` | ` + "`AWS_REGION`, `AWS_DEFAULT_REGION`" + ` | an API key in ` + "`AWS_BEARER_TOKEN_BEDROCK`" + `; else requests are signed with the credentials that AWS's tools find (` + "`AWS_ACCESS_KEY_ID`, `AWS_PROFILE`" + `, single sign-on, roles of machines and containers) |
| ` + "`vertex`" + ` | ` + "`CLOUD_ML_REGION`, `GOOGLE_CLOUD_LOCATION`; `ANTHROPIC_VERTEX_PROJECT_ID`, `GOOGLE_CLOUD_PROJECT`" + ` | Google's application default credentials (` + "`GOOGLE_APPLICATION_CREDENTIALS`" + `, gcloud, the machine's); or a token in the variable of ` + "`api_key_env`" + ` |

Bedrock is the endpoint ` + "`bedrock-mantle`" + `, whose names of models have no region (` + "`anthropic.claude-opus-5`, not `us.anthropic.…`" + `). On both clouds
` + "`strategy: native`" + ` writes plain summaries only. Thoughts belong to the cloud that made them: a session that
moves to another one goes on without those so far.
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
  - name: house               # your own server
    provider: openai
    model: qwen2.5-14b
    base_url: http://localhost:8000/v1
    api_key_env: HOUSE_KEY
    context_window: 32768
    max_output_tokens: 4096
auth:
  keys:
    - {name: alice, secret: "sha256:2b57c4131d4279db41586d827bb3ca1949590301c0330d25db874261f27b207f"}   # bobbin keys new alice
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
