package agents_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"bobbin/app/agents"
	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

var update = flag.Bool("update", false, "write docs/AGENTS.md anew")

// reference is the file that documents the keys.
const reference = "../../docs/AGENTS.md"

// TestReference: docs/AGENTS.md documents every key, and nothing else. Run with -update to
// write it anew.
func TestReference(t *testing.T) {
	t.Parallel()
	want := document(t)
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
		t.Errorf("%s is not what the code says; run: go test ./app/agents -run TestReference -update", reference)
	}
}

// The example of the documentation is valid.
func TestReferenceExample(t *testing.T) {
	t.Parallel()
	if _, err := agents.ParseFile("support.yaml", example, known()); err != nil {
		t.Errorf("the example: %v", err)
	}
}

const example = `name: support
description: Answers questions about our product.
model: gpt-4o
fallback_models: [gpt-4o-mini]
system_prompt: |
  You are the support engineer of ACME. Be short and exact.
tools: [current_time, calculator]
temperature: 0.2
max_output_tokens: 2000
context:
  policy: budget
  max_messages_before_summary: 20
tool_settings:
  calculator: {timeout: 2s}
`

// section returns the table of the keys that begin with the prefix, without it. The first
// section is of those without a dot or of a format.
func section(prefix string, has func(path string) bool) string {
	var b strings.Builder
	b.WriteString("| key | type | default | allowed | meaning |\n|---|---|---|---|---|\n")
	for _, k := range agents.FileKeys() {
		if has(k.Path) {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", strings.TrimPrefix(k.Path, prefix), k.Type, k.Default, k.Bounds, k.Meaning)
		}
	}
	return b.String()
}

// below returns the table of the keys of a section.
func below(prefix string) string {
	return section(prefix, func(path string) bool { return strings.HasPrefix(path, prefix) })
}

// policyTable returns what each policy has where an agent's file says nothing.
func policyTable(t *testing.T) string {
	t.Helper()
	names := contextwindow.PresetNames()
	rows := map[string][]string{}
	var order []string
	for _, name := range names {
		fields, err := contextwindow.Explain(contextwindow.Global{}, core.Agent{Context: core.ContextSettings{Policy: name}})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fields[1:] { // not the policy
			key, isPolicys := strings.CutPrefix(f.Name, "context.")
			if !isPolicys {
				break
			}
			if rows[key] == nil {
				order = append(order, key)
			}
			rows[key] = append(rows[key], f.Value)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| | `%s` |\n|---|%s\n", strings.Join(names, "` | `"), strings.Repeat("---|", len(names)))
	for _, name := range order {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, strings.Join(rows[name], " | "))
	}
	return b.String()
}

// document returns the text of docs/AGENTS.md.
func document(t *testing.T) string {
	t.Helper()
	parameter := func(path string) bool {
		switch path {
		case "temperature", "top_p", "max_output_tokens", "stop", "seed", "reasoning_effort":
			return true
		}
		return strings.HasPrefix(path, "response_format.")
	}
	return "# Agents\n\n" + introduction + "```yaml\n# agents/support.yaml\n" + example + "```\n" +
		"\n## The agent\n\n" + section("", func(path string) bool { return !strings.Contains(path, ".") && !parameter(path) }) +
		"\n## Parameters of the model\n\n" + section("", parameter) + parameters +
		"\n## context\n\n" + contextText + below("context.") +
		"\nThe values of the policies (0: off; an empty `summary_model`: see [POLICIES.md](POLICIES.md)):\n\n" + policyTable(t) +
		"\n## compaction\n\nLimits the size of the tool loop of one run.\n\n" + below("compaction.") +
		"\n## tool_settings\n\nOne section for each tool, under the tool's name.\n\n" + below("tool_settings.<tool>.")
}

const introduction = `An agent is one YAML file in ` + "`agents_dir`" + ` (` + "`agents/`" + `), ` + "`*.yaml`" + `, at most 1 MiB. ` + "`assistant`, `quick` and `researcher`" + ` are built in; a file with
the name of one replaces it. Only ` + "`name`" + ` is required.

| | |
|---|---|
| ` + "`bobbin agents list`" + ` | each agent, its model, and whether the model is usable; if not, why |
| ` + "`bobbin agents show <name>`" + ` | every key, its value and where it comes from |
| ` + "`bobbin agents check [file or folder…]`" + ` | checks files without a server; exit code 1 if one has an error |
| ` + "`bobbin agents reload`" + ` | the running server reads the files again ([more](OPERATION.md#agents)) |

Unknown keys and values of the wrong type or out of bounds are errors with file, line and column, and so are settings that contradict each other, once the former are right: at startup the server
refuses to run, at a reload a broken file keeps the agent that it had. If an agent's model cannot be used, for example because its key is missing, there is only a warning, at startup, by
` + "`bobbin agents list` and by `bobbin doctor`" + `: messages to the agent are rejected with 422 until the model is usable.

`

const parameters = `
They apply to answers, not to summaries and titles. A parameter that the agent's model or one of its fallback models does not accept is an error that names it:

| | does not accept |
|---|---|
| Anthropic, Bedrock, Vertex | ` + "`seed`, `reasoning_effort`, `json_object`" + `; ` + "`temperature`" + ` over 1, or together with ` + "`top_p`" + `; both from Claude 4.7 on and with ` + "`thinking_budget`; `json_schema` before Claude 4.5" + `; stop texts of white space only |
| OpenAI, reasoning models | ` + "`temperature`, `top_p`; `stop` from o3 on" + ` |
| OpenAI, other models | ` + "`reasoning_effort`; `json_schema` before GPT-4o" + ` |
| OpenAI, models with ` + "`api: responses`" + ` | also ` + "`stop`, `seed`" + ` |
| Gemini before 2.5, Mistral | ` + "`reasoning_effort`" + ` |
| Ollama, OpenRouter, other servers | accepts all, as far as Bobbin knows; their effect depends on the server |
| demo | accepts all; only ` + "`max_output_tokens`" + ` has an effect |

When a session or a message chooses another model, the parameters that this model does not support are omitted. Only ` + "`stop`, `json_object` and `json_schema`" + ` are never omitted: the message is rejected
with 422 instead.
`

const contextText = `When the conversation is summarized and what stays unchanged. A policy sets all keys, the file overrides individual ones.

`
