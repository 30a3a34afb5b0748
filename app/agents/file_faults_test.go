package agents_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"bobbin/app/agents"
	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/tests/compare"
	"bobbin/tests/golden"
	"bobbin/tests/must"
)

// TestLoadFaults: every fault tells file, line and column, and what is allowed.
func TestLoadFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, want string
	}{
		{"unknown field", "name: a\nmodl: x\n", "2:1: modl is not a known field; did you mean model?"},
		{"unknown field of a section", "name: a\ncontext:\n  polcy: budget\n", "3:3: context.polcy is not a known field; did you mean policy?"},
		{"unknown and like nothing", "name: a\ncompaction: {x: 1}\n",
			"2:14: compaction.x is not a known field; there are enabled, keep_recent_iterations, max_context_tokens, min_tokens, summary_model, threshold_iterations"},
		{"merge key", "name: a\n<<: {model: x}\n", "2:1: << is not a known field; there are compaction, context, description, fallback_models, max_iterations, max_output_tokens, model, name, reasoning_effort, response_format, seed, stop, system_prompt, temperature, tool_settings, tools, top_p"},
		{"twice", "name: a\nmodel: x\nmodel: y\n", "3:1: model is there already, in line 2"},
		{"types", "name: 7\nsystem_prompt: [x]\ntools: calculator\nmax_iterations: many\ncontext: budget\ncompaction:\n  enabled: perhaps\n  threshold_iterations: 1.5\n",
			`1:1: name "7" is not text; put it in quotes
2:1: system_prompt is one value, and not a list or a section
3:1: tools is not a list; write tools: [one, two]
4:1: max_iterations "many" is not a whole number
5:1: context is a section: write its fields below it, indented
7:3: compaction.enabled "perhaps" is not true or false
8:3: compaction.threshold_iterations "1.5" is not a whole number`},
		{"no number", "name: a\ncontext: {usage_threshold: .nan}\n", `2:28: context.usage_threshold: ".nan" is not a value of JSON`},
		{"lists", "name: a\ntools: [calculator, ~, [x], calculator, 5]\nfallback_models: ['', x]\n",
			`2:21: tools[1] is empty; remove it
2:24: tools[2] is one value, and not a list or a section
2:29: tool "calculator" is there twice
2:41: tools[4] "5" is not text; put it in quotes
3:19: fallback_models[0] is empty; remove it`},
		{"a tool twice", "name: a\ntools: [calculator, calculator]\n", `2:21: tool "calculator" is there twice`},
		{"no name", "description: x\n", " name is missing"},
		{"bad name", "name: My Agent\n", `1:1: name "My Agent" is not allowed; use 1 to 64 lower-case letters, digits, - and _, with a letter or digit first`},
		{"tool", "name: a\ntools:\n  - calculatr\n  - shell\n",
			"3:5: tool \"calculatr\" does not exist; did you mean calculator?\n4:5: tool \"shell\" does not exist; there are calculator, current_time, read_result, search_history"},
		{"ranges", "name: a\nmax_iterations: -1\ntemperature: 2.5\n", "2:1: max_iterations is -1; use 1 to 1000, or 0 for the default (10)\n3:1: temperature is 2.5; use 0 to 2"},
		{"words", "name: a\ncontext:\n  policy: slidding\n  strategy: best\n  timing: ''\n",
			`3:3: context.policy "slidding" does not exist; did you mean sliding?
4:3: context.strategy "best" does not exist; there are extractive, hybrid, llm, native
5:3: context.timing is empty; use one of inline, after_run, background`},
		{"form and content", "name: a\nmax_iterations: 5000\ntools: [shell]\ncontext:\n  recall: maybe\n  land_at: 2\n  usage_threshold: 80\n",
			`2:1: max_iterations is 5000; use 1 to 1000, or 0 for the default (10)
3:9: tool "shell" does not exist; there are calculator, current_time, read_result, search_history
5:3: context.recall "maybe" does not exist; there are auto, off, tool
6:3: context.land_at is 2: the landing must be below the trigger, use a share above 0 and below 1
7:3: context.usage_threshold is 80: use a share between 0 and 1`},
		{"context contradicts itself", "name: a\ncontext:\n  policy: budget\n  land_at: 1.5\n  max_messages_before_summary: 3\n",
			`4:3: context.land_at is 1.5: the landing must be below the trigger, use a share above 0 and below 1
5:3: context.max_messages_before_summary (3) must be above min_recent_messages (6), or there is nothing to summarize when it fires`},
		{"contradiction with the preset", "name: a\ncontext:\n  policy: ratio\n  max_context_tokens: 3000\n",
			"2:1: context: max_summary_tokens (2000) must be below the landing point of max_context_tokens (3000)"},
		{"compaction of nothing by a default", "name: a\ncompaction: {threshold_iterations: 2}\n",
			"2:1: compaction.keep_recent_iterations (3) must be below threshold_iterations (2), or there is nothing to replace"},
		{"empty", "# nothing\n", " the file is empty; write at least a name"},
		{"no mapping", "- name: a\n", "1:1: expected fields and values, such as name: helper"},
		{"tabs", "name: a\ncontext:\n\tpolicy: budget\n", "3:1: a tab cannot indent; use spaces"},
		{"stops", "name: a\nstop: [a, b, c, d, " + strings.Repeat("e", 257) + "]\n", "2:1: stop has 5 entries; use at most 4\n2:20: stop[4] has 257 characters; use at most 256"},
		{"format without a type", "name: a\nresponse_format: {name: a b}\n", "2:1: response_format.type is missing; use one of text, json_object, json_schema\n2:19: response_format.name \"a b\" is not allowed; use 1 to 64 letters, digits, - and _"},
		{"no schema", "name: a\nresponse_format: {type: json_schema}\n", "2:1: response_format.schema is missing; write the JSON Schema of the answer"},
		{"schema for nothing", "name: a\nresponse_format: {type: json_object, schema: {}}\n", "2:38: response_format.schema is for type json_schema only; remove it, or change the type"},
		{"schema with a key twice", "name: a\nresponse_format: {type: json_schema, schema: {a: 1, a: 2}}\n", "2:53: response_format.schema.a is there already, in line 2"},
		{"schema in itself", "name: a\nresponse_format: {type: json_schema, schema: &s {a: *s}}\n", "2:46: response_format.schema has more than 64 levels; make it flatter"},
		{"schema with wrong words", "name: a\nresponse_format: {type: json_schema, schema: {type: 3, properties: [1]}}\n", "2:38: response_format.schema: it is not a JSON Schema: at '/type': got number, want array"},
		{"schema elsewhere", "name: a\nresponse_format: {type: json_schema, schema: {$ref: 'https://example.com/x'}}\n", `2:38: response_format.schema: it is not a JSON Schema: failing loading "https://example.com/x": a schema must not refer to other documents`},
		{"two documents", "name: a\n---\nname: b\n", " the file holds more than one document; write one agent a file"},
		{"no YAML", "name: [\n", "1:1: it is not YAML from about here on: did not find expected node content"},
		{"too large", "name: a\nsystem_prompt: " + strings.Repeat("x", 10<<20), " the file has more than 1048576 bytes; make it smaller"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, map[string]string{"a.yaml": tt.file})
			if err == nil {
				t.Fatal("Load: got no error")
			}
			want := "agents/a.yaml:" + strings.ReplaceAll(tt.want, "\n", "\nagents/a.yaml:")
			compare.Equal(t, "faults", want, err.Error())
		})
	}
}

// All faults of all files come at once.
func TestLoadAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := load(t, map[string]string{
		"a.yaml": "name: same\n", "b.yaml": "name: same\n", "c.yml": "name: c\n", "d.yaml": "nam: d\n", "e.yaml": "x",
	})
	want := `agents/b.yaml: agent same is in agents/a.yaml too; give one another name
agents/c.yml: only *.yaml is read; rename the file
agents/d.yaml:1:1: nam is not a known field; did you mean name?
agents/d.yaml: name is missing
agents/e.yaml:1:1: expected fields and values, such as name: helper`
	compare.Equal(t, "faults", want, err.Error())
}

// FuzzParse: whatever the file, it is a valid agent or a fault; nothing panics.
func FuzzParse(f *testing.F) {
	for _, text := range []string{full, "name: a", "name: &a a\nmodel: *a\n", "a: &a [*a]", "context: &c {policy: budget}\ncompaction: *c\n", "name: !!binary aGk=\n", "? [x]\n: y\n", "tools: &t [a, *t]\n", "---\n...\n", "name: a\nmax_iterations: 0x10\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		agent, err := agents.ParseFile("a.yaml", text, known())
		if err != nil {
			if agent.Name != "" || !strings.HasPrefix(err.Error(), "a.yaml:") {
				t.Errorf("got agent %q and error %v, want no agent and an error that names the file", agent.Name, err)
			}
			return
		}
		if agent.Name == "" || agent.Version == "" || agent.Tools == nil {
			t.Errorf("got %+v, want a name, a version and tools", agent)
		}
	})
}

// reference is the page with the keys of agents' files.
const reference = "../../docs/AGENTS.md"

// TestReference: docs/AGENTS.md documents every key, and nothing else. Run with -update to
// write the tables anew.
func TestReference(t *testing.T) {
	t.Parallel()
	parameter := regexp.MustCompile(`^(temperature|top_p|max_output_tokens|stop|seed|reasoning_effort|response_format\..*)$`)
	section := func(prefix string) string {
		return keyTable(prefix, func(path string) bool { return strings.HasPrefix(path, prefix) })
	}
	checkTables(t, reference, [][2]string{
		{"## The agent", keyTable("", func(path string) bool { return !strings.Contains(path, ".") && !parameter.MatchString(path) })},
		{"## Parameters of the model", keyTable("", parameter.MatchString)},
		{"## context", section("context.")}, {"The values of the policies", policyTable(t)},
		{"## compaction", section("compaction.")}, {"## tool_settings", section("tool_settings.<tool>.")},
	})
}

// checkTables compares the first table after each text of a page with what the code says.
func checkTables(t *testing.T, path string, tables [][2]string) {
	t.Helper()
	data := must.Get(os.ReadFile(path))(t)
	page := string(data)
	for _, table := range tables {
		before, after, ok := strings.Cut(page, "\n"+table[0])
		text, rest, ok2 := strings.Cut(after, "\n|")
		if _, behind, more := strings.Cut(rest, "\n\n"); more {
			rest = "\n" + behind
		} else {
			rest = "" // the page ends with the table
		}
		if !ok || !ok2 {
			t.Fatalf("%s has no table after %q", path, table[0])
		}
		page = before + "\n" + table[0] + text + "\n" + table[1] + rest
	}
	golden.Check(t, path, page)
}

// keyTable returns the table of some of the keys, without the prefix.
func keyTable(prefix string, has func(path string) bool) string {
	var b strings.Builder
	b.WriteString("| key | type | default | allowed | meaning |\n|---|---|---|---|---|\n")
	for _, k := range agents.FileKeys() {
		if has(k.Path) {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", strings.TrimPrefix(k.Path, prefix), k.Type, k.Default, k.Bounds, k.Meaning)
		}
	}
	return b.String()
}

// policyTable returns what each policy has where an agent's file says nothing.
func policyTable(t *testing.T) string {
	t.Helper()
	names := contextwindow.PresetNames()
	rows := map[string][]string{}
	var order []string
	for _, name := range names {
		fields := must.Get(contextwindow.Explain(contextwindow.Global{}, core.Agent{Context: core.ContextSettings{Policy: name}}))(t)
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
