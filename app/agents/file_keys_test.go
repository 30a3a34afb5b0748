package agents_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"bobbin/app/agents"
	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/golden"
	"bobbin/tests/must"
)

// leaves returns the paths of the fields of an agent's file that have values.
func leaves(typ reflect.Type, prefix string) []string {
	var out []string
	for field := range typ.Fields() {
		tag, inner := field.Tag.Get("json"), field.Type
		tag, _, _ = strings.Cut(tag, ",")
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "-" || tag == "version":
		case tag == "":
			out = append(out, leaves(inner, prefix)...)
		case inner.Kind() == reflect.Struct:
			out = append(out, leaves(inner, prefix+tag+".")...)
		case inner.Kind() == reflect.Map:
			out = append(out, leaves(inner.Elem(), prefix+tag+".<tool>.")...)
		default:
			out = append(out, prefix+tag)
		}
	}
	return out
}

// The table of keys has every key of an agent's file, once, and none else.
func TestKeysCoverAgent(t *testing.T) {
	t.Parallel()
	want, got := map[string]bool{}, map[string]bool{}
	for _, path := range leaves(reflect.TypeFor[core.Agent](), "") {
		want[path] = true
	}
	for _, k := range agents.FileKeys() {
		compare.True(t, !got[k.Path], "%s is there twice", k.Path)
		compare.True(t, k.Type != "" && k.Meaning != "", "%s: got type %q and meaning %q, want both", k.Path, k.Type, k.Meaning)
		got[k.Path] = true
	}
	compare.Equal(t, "keys", want, got)
}

// place returns an agent's file in which the value is at the path, and where.
func place(path, value string) (file, at string) {
	switch {
	case path == "name":
		return "name: " + value + "\n", "a.yaml:1:"
	case path == "tools":
		return "name: a\ntools: " + value + "\n", "a.yaml:2:"
	}
	path = strings.Replace(path, "<tool>", "fetch_url", 1)
	file = "name: a\ntools: [fetch_url]\n"
	parts := strings.Split(path, ".")
	for i, part := range parts {
		file += strings.Repeat("  ", i) + part + ":"
		if i == len(parts)-1 {
			file += " " + value
		}
		file += "\n"
		if part == "response_format" && parts[1] != "type" {
			file += "  type: json_schema\n"
		}
	}
	return file, "a.yaml:" + string(rune('0'+strings.Count(file, "\n"))) + ":"
}

// fetching is what files may refer to that have fetch_url.
func fetching() agents.KnownParts {
	k := known()
	k.Tools = append(k.Tools, "fetch_url")
	k.Model = func(name string) (llm.Info, error) {
		if name == "nosuch" {
			return llm.Info{}, core.Errorf(core.ErrNotFound, "model %q is not known", name)
		}
		return llm.Info{Name: name}, nil
	}
	return k
}

// Every key refuses a value of the wrong type, and one out of its bounds, with file, line and
// column.
func TestEveryKeyIsChecked(t *testing.T) {
	t.Parallel()
	wrong := map[string]string{
		"text": "[x]", "number": "many", "whole number": "1.5", "true or false": "perhaps", "list of texts": "x", "time": "5", "section": "x",
	}
	out := map[string]string{
		"name": "A B", "fallback_models": "[nosuch]", "tools": "[hammer]", "max_iterations": "1001", "temperature": "2.1", "top_p": "1.1",
		"max_output_tokens": "1000001", "stop": "[a, b, c, d, e]", "seed": "-1", "reasoning_effort": "much", "response_format.type": "xml",
		"response_format.name": "a.b", "response_format.schema": "{a: .nan}",
		"context.policy": "none", "context.usage_threshold": "1.1", "context.land_at": "1", "context.max_messages_before_summary": "-1",
		"context.max_tokens_before_summary": "-1", "context.max_unsummarized_messages": "-1", "context.window_messages": "-1",
		"context.min_recent_messages": "-1", "context.max_context_tokens": "-1", "context.target_context_tokens": "-1",
		"context.response_reserve": "0", "context.strategy": "best", "context.max_summary_tokens": "-1", "context.max_summary_share": "0.6",
		"context.timing": "late", "context.summary_role": "tool", "context.recall": "always", "context.recall_share": "0.6",
		"compaction.threshold_iterations": "0", "compaction.keep_recent_iterations": "0", "compaction.min_tokens": "-1", "compaction.max_context_tokens": "-1",
		"compaction.summary_model":      "nosuch",
		"context.summary_model":         "nosuch",
		"tool_settings.<tool>.approval": "maybe", "tool_settings.<tool>.timeout": "1ms", "tool_settings.<tool>.max_output_bytes": "1",
		"tool_settings.<tool>.allow_hosts": "['*']", "tool_settings.<tool>.max_bytes": "1",
	}
	refused := func(path, value string) {
		t.Helper()
		file, at := place(path, value)
		_, err := agents.ParseFile("a.yaml", file, fetching())
		compare.True(t, err != nil && strings.Contains(err.Error(), at), "%s: %s: got %v, want a fault at %s\n%s", path, value, err, at, file)
	}
	for _, k := range agents.FileKeys() {
		refused(k.Path, wrong[k.Type])
		compare.True(t, (k.Bounds != "") == (out[k.Path] != ""), "%s: got the bounds %q and the value out of them %q, want both or none", k.Path, k.Bounds, out[k.Path])
		if out[k.Path] != "" {
			refused(k.Path, out[k.Path])
		}
	}
}

// Parameters are read as they are written: 0 is a value, and a schema keeps its order.
func TestParameters(t *testing.T) {
	t.Parallel()
	text := `name: a
temperature: 0
seed: 0
max_output_tokens: 1_500
stop: [END]
reasoning_effort: low
response_format:
  type: json_schema
  name: bill
  strict: true
  schema:
    type: object
    required: [total]
    properties: {zeta: {type: string}, alpha: {type: [integer, "null"], maximum: 10, default: 2026-01-01}}
`
	got := must.Get(agents.ParseFile("a.yaml", text, known()))(t)
	want := core.ModelParameters{
		Temperature: ptr(0.0), Seed: ptr(0), MaxOutputTokens: 1500, Stop: []string{"END"}, ReasoningEffort: "low",
		ResponseFormat: &core.ResponseFormat{Type: core.FormatJSONSchema, Name: "bill", Strict: ptr(true), Schema: json.RawMessage(
			`{"type":"object","required":["total"],"properties":{"zeta":{"type":"string"},"alpha":{"type":["integer","null"],"maximum":10,"default":"2026-01-01"}}}`)},
	}
	compare.Equal(t, "parameters", want, got.ModelParameters)
}

// A parameter that the agent's model or a fallback does not take is refused by name, where it
// is written, also without the key of the model.
func TestParametersThatModelsLack(t *testing.T) {
	t.Parallel()
	k := known()
	k.Model = func(name string) (llm.Info, error) {
		switch name {
		case "reasoner":
			return llm.Info{Name: name, Lacks: []llm.Parameter{llm.Temperature, llm.JSONObject}}, nil
		case "toolless":
			return llm.Info{Name: name, Lacks: []llm.Parameter{llm.Tools}}, nil
		case "":
			return llm.Info{Name: "the-default", Lacks: []llm.Parameter{llm.Seed}}, nil
		case "keyless":
			return llm.Info{Name: name, Lacks: []llm.Parameter{llm.Temperature}}, core.Errorf(core.ErrInvalid, "model keyless needs an API key")
		case "nosuch":
			return llm.Info{}, core.Errorf(core.ErrNotFound, "model nosuch is not known")
		}
		return llm.Info{Name: name}, nil
	}
	for text, want := range map[string]string{
		"model: any\ntemperature: 1\n":                              "",
		"model: nosuch\ntemperature: 1\n":                           "",
		"model: keyless\ntemperature: 1\n":                          "a.yaml:3:1: temperature: the model keyless does not take temperature; remove it, or choose another model",
		"model: toolless\ntools: []\n":                              "",
		"model: toolless\ntools: [calculator]\n":                    "a.yaml:3:1: tools: the model toolless does not take tools; remove it, or choose another model",
		"model: reasoner\nseed: 1\n":                                "",
		"model: reasoner\ntemperature: 0\n":                         "a.yaml:3:1: temperature: the model reasoner does not take temperature; remove it, or choose another model",
		"model: any\nfallback_models: [reasoner]\ntemperature: 0\n": "a.yaml:4:1: temperature: the fallback model reasoner does not take temperature; remove it, or choose another model",
		"model: reasoner\nresponse_format: {type: json_object}\n":   "a.yaml:3:1: response_format: the model reasoner does not take response_format json_object; remove it, or choose another model",
		"model: reasoner\ntemperature: 0\ntop_p: 3\n":               "a.yaml:3:1: temperature: the model reasoner does not take temperature; remove it, or choose another model\na.yaml:4:1: top_p is 3; use 0 to 1",
		"description: x\nseed: 1\n":                                 "a.yaml:3:1: seed: the model the-default does not take seed; remove it, or choose another model",
	} {
		_, err := agents.ParseFile("a.yaml", "name: a\n"+text, k)
		got := ""
		if err != nil {
			got = err.Error()
		}
		compare.Equal(t, fmt.Sprintf("%q", text), want, got)
	}
}

// The built-in agents work with a model that takes no tools: without their tools.
func TestBuiltinAgentsWithoutTools(t *testing.T) {
	t.Parallel()
	k := known()
	k.Model = func(name string) (llm.Info, error) {
		return llm.Info{Name: name, Lacks: []llm.Parameter{llm.Tools}}, nil
	}
	agents := must.Get(agents.LoadCatalog("", k))(t)
	compare.Equal(t, "tools", 0, len(must.Get(agents.Get("assistant"))(t).Tools))
}

// withTools is known with more tools, and one that is off.
func withTools(on ...string) agents.KnownParts {
	k := known()
	k.Tools = append(k.Tools, on...)
	k.Off = map[string]string{"shell": "set tools.shell.enabled: true in bobbin.yaml"}
	return k
}

// fetch_url that may ask all hosts needs an approval, unless the file says otherwise.
func TestFetchURLNeedsAnApproval(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]struct {
		mode     core.ApprovalMode
		anywhere bool
	}{
		"":                                {core.ApprovalFirst, false},
		"{timeout: 5s}":                   {core.ApprovalFirst, false},
		"{approval: always}":              {core.ApprovalAlways, false},
		"{approval: never}":               {core.ApprovalNever, true},
		"{allow_hosts: [a.example]}":      {"", false},
		"{allow_hosts: [], timeout: 10s}": {core.ApprovalFirst, false},
		"{allow_hosts: [a.example], approval: never}": {core.ApprovalNever, false},
	} {
		file := "name: a\ntools: [calculator, fetch_url]\ntool_settings:\n  calculator: {timeout: 2s}\n"
		if settings != "" {
			file += "  fetch_url: " + settings + "\n"
		}
		agent := must.Get(agents.ParseFile("a.yaml", file, withTools("fetch_url")))(t)
		got := agent.ToolSettings["fetch_url"].Approval
		compare.Equal(t, settings+": approval, sends anywhere", []any{want.mode, want.anywhere}, []any{got, agent.SendsAnywhere()})
		if got := agent.ToolSettings["calculator"]; got.Approval != "" || got.Timeout != core.Duration(2*time.Second) {
			t.Errorf("%s: got %+v for another tool, want it as it is written", settings, got)
		}
	}
	without := must.Get(agents.ParseFile("a.yaml", "name: a\ntools: [calculator]\n", withTools("fetch_url")))(t)
	compare.True(t, without.ToolSettings == nil, "without the tool: got %+v, want no settings", without.ToolSettings)
}

// Every fault of the settings tells file, line and column, and what is allowed.
func TestToolSettingFaults(t *testing.T) {
	t.Parallel()
	const begin = "name: a\ntools: [calculator, fetch_url]\ntool_settings:\n"
	for name, c := range map[string]struct{ file, want string }{
		"a tool that is off": {"name: a\ntools: [shell]\n", `2:9: tool "shell" is switched off; set tools.shell.enabled: true in bobbin.yaml`},
		"unknown tool":       {begin + "  fetch_urls: {}\n", `4:3: tool_settings.fetch_urls: tool "fetch_urls" does not exist; did you mean fetch_url?`},
		"not the agent's":    {begin + "  current_time: {timeout: 1s}\n", "4:3: tool_settings.current_time: the agent does not have the tool; add it to tools"},
		"off and not listed": {begin + "  shell: {}\n", "4:3: tool_settings.shell: the agent does not have the tool; add it to tools"},
		"unknown field":      {begin + "  fetch_url: {allow_host: [x]}\n", "4:15: tool_settings.fetch_url.allow_host is not a known field; did you mean allow_hosts?"},
		"another tool's field": {begin + "  calculator:\n    timeout: 1s\n    allow_hosts: [x]\n",
			"6:5: tool_settings.calculator.allow_hosts: calculator has no such setting; there are approval, max_output_bytes, timeout"},
		"types": {begin + "  fetch_url: {timeout: 5, max_bytes: 999999999, allow_hosts: ['https://x', '*', a.b]}\n  calculator: {approval: sometimes}\n",
			`4:15: tool_settings.fetch_url.timeout "5" is not a time with a unit, such as 30s, from 100ms to 10m
4:27: tool_settings.fetch_url.max_bytes is 999999999; use 1024 to 8388608
4:63: tool_settings.fetch_url.allow_hosts[0] "https://x" is not allowed; use example.com, or *.example.com for all below it
4:76: tool_settings.fetch_url.allow_hosts[1] "*" is not allowed; use example.com, or *.example.com for all below it
5:16: tool_settings.calculator.approval must be always (a person must agree to every call), first (until one was approved in the session) or never`},
		"twice":      {begin + "  calculator: {}\n  calculator: {}\n", "5:3: tool_settings.calculator is there already, in line 4"},
		"of no tool": {"name: a\ntool_settings: {x: {}}\n", `2:17: tool_settings.x: tool "x" does not exist; there are none`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := agents.ParseFile("a.yaml", c.file, withTools("fetch_url"))
			must.True(t, err != nil, "got no error")
			want := "a.yaml:" + strings.ReplaceAll(c.want, "\n", "\na.yaml:")
			compare.Equal(t, "faults", want, err.Error())
		})
	}
}

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
			compare.Equal(t, "fault", c.want, got)
		})
	}
}

// A profile has the agent's fallback models in their order, without the model that
// is used anyway and without those that are gone.
func TestProfileHasFallbacks(t *testing.T) {
	t.Parallel()
	p := newProfiles(t, contextwindow.Global{}, core.Agent{Name: "a", Model: "one", FallbackModels: []string{"two", "gone", "three"}})
	for asked, want := range map[string][]string{"": {"two", "three"}, "two": {"three"}, "four": {"two", "three"}} {
		profile := must.Get(p.Profile(t.Context(), core.Session{Agent: "a"}, asked))(t)
		var got []string
		for _, m := range profile.Fallbacks {
			got = append(got, m.Info().Name)
		}
		compare.Equal(t, fmt.Sprintf("fallbacks when %q is asked for", asked), want, got)
	}
}

// TestLoadFaults: every fault tells file, line and column, and what is allowed.
func TestLoadFaults(t *testing.T) {
	t.Parallel()
	faults := func(_, file string) string {
		_, err := load(t, map[string]string{"a.yaml": file})
		return fmt.Sprint(err)
	}
	golden.Cases(t, "testdata/faults.txt", faults)
	compare.Equal(t, "too large", "agents/a.yaml: the file has more than 1048576 bytes; make it smaller", faults("", "name: a\nsystem_prompt: "+strings.Repeat("x", 10<<20)))
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
	for _, text := range []string{weatherTool, "name: a", "name: &a a\nmodel: *a\n", "a: &a [*a]", "context: &c {policy: budget}\ncompaction: *c\n", "name: !!binary aGk=\n", "? [x]\n: y\n", "tools: &t [a, *t]\n", "---\n...\n", "name: a\nmax_iterations: 0x10\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		agent, err := agents.ParseFile("a.yaml", text, known())
		if err != nil {
			compare.True(t, agent.Name == "" && strings.HasPrefix(err.Error(), "a.yaml:"), "got agent %q and error %v, want no agent and an error that names the file", agent.Name, err)
			return
		}
		compare.True(t, agent.Name != "" && agent.Version != "" && agent.Tools != nil, "got %+v, want a name, a version and tools", agent)
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
