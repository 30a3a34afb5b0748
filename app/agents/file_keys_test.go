package agents_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents"
	"bobbin/app/core"
	"bobbin/app/core/llm"
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
		if got[k.Path] {
			t.Errorf("%s is there twice", k.Path)
		}
		if k.Type == "" || k.Meaning == "" {
			t.Errorf("%s: got type %q and meaning %q, want both", k.Path, k.Type, k.Meaning)
		}
		got[k.Path] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
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
		if err == nil || !strings.Contains(err.Error(), at) {
			t.Errorf("%s: %s: got %v, want a fault at %s\n%s", path, value, err, at, file)
		}
	}
	for _, k := range agents.FileKeys() {
		refused(k.Path, wrong[k.Type])
		if (k.Bounds != "") != (out[k.Path] != "") {
			t.Errorf("%s: got the bounds %q and the value out of them %q, want both or none", k.Path, k.Bounds, out[k.Path])
		}
		if out[k.Path] != "" {
			refused(k.Path, out[k.Path])
		}
	}
}

// Settings has every key: with the agent's value, or with what holds without it.
func TestSettings(t *testing.T) {
	t.Parallel()
	text := "name: a\ntools: [calculator, fetch_url]\ntemperature: 0\nstop: [\"\\n\\n\"]\ntool_settings: {fetch_url: {timeout: 2s, allow_hosts: [a.example, b.example]}}\n"
	agent := must.Get(agents.ParseFile("a.yaml", text, fetching()))(t)
	got := map[string]agents.Setting{}
	for _, s := range agents.Settings(agent) {
		got[s.Path] = s
	}
	for _, k := range agents.FileKeys() {
		if path := strings.Replace(k.Path, "<tool>", "fetch_url", 1); got[path].Path == "" {
			t.Errorf("%s is not among the settings", path)
		}
	}
	for path, want := range map[string]agents.Setting{
		"temperature":                         {Value: "0", Set: true},
		"stop":                                {Value: `["\n\n"]`, Set: true},
		"tools":                               {Value: "calculator, fetch_url", Set: true},
		"max_iterations":                      {Value: "10"},
		"model":                               {Value: "default_llm"},
		"response_format.type":                {Value: "text"},
		"compaction.threshold_iterations":     {Value: "8"},
		"tool_settings.fetch_url.timeout":     {Value: "2s", Set: true},
		"tool_settings.fetch_url.allow_hosts": {Value: "a.example, b.example", Set: true},
		"tool_settings.calculator.timeout":    {Value: "limits.tool_time"},
	} {
		if want.Path = path; got[path] != want {
			t.Errorf("got %+v, want %+v", got[path], want)
		}
	}
	if _, ok := got["tool_settings.calculator.allow_hosts"]; ok {
		t.Error("calculator has allow_hosts, which it does not know")
	}
}

// Parameters are read as they are written: 0 is a value, and a schema keeps its order.
func TestParameters(t *testing.T) {
	t.Parallel()
	text := `name: a
temperature: 0
seed: 0
max_output_tokens: 500
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
		Temperature: ptr(0.0), Seed: ptr(0), MaxOutputTokens: 500, Stop: []string{"END"}, ReasoningEffort: "low",
		ResponseFormat: &core.ResponseFormat{Type: core.FormatJSONSchema, Name: "bill", Strict: ptr(true), Schema: json.RawMessage(
			`{"type":"object","required":["total"],"properties":{"zeta":{"type":"string"},"alpha":{"type":["integer","null"],"maximum":10,"default":"2026-01-01"}}}`)},
	}
	if diff := cmp.Diff(want, got.ModelParameters); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
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
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
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
	agent, err := agents.Get("assistant")
	if err != nil || len(agent.Tools) != 0 {
		t.Errorf("got the tools %v, %v; want none", agent.Tools, err)
	}
}
