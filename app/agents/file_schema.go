package agents

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"go.yaml.in/yaml/v3"

	"bobbin/app/core"
)

// schemas describe the files of agents and of tools: the form of each key, and in keywords of their own what
// the documentation says of it.
//
//go:embed schemas/*.json
var schemas embed.FS

// FileKey is a key of an agent's file, or of a tool's, that has a value. The keys come from the schema of the
// file and are the source of the tables in docs/AGENTS.md and docs/TOOLS.md and of `bobbin agents show`.
type FileKey struct {
	Path    string // as in the file, with dots; <tool> stands for the name of a tool
	Type    string // what its value is
	Default string // what holds without it, in Markdown; empty = nothing
	Meaning string // a sentence, in Markdown
	Bounds  string // the values that are allowed, in Markdown; empty = all of the type

	Kinds    []core.ToolKind // of tools that have it; none = all
	Required []core.ToolKind // of tools that need it
}

// Has reports whether definitions of the kind have the key.
func (k FileKey) Has(kind core.ToolKind) bool {
	return len(k.Kinds) == 0 || slices.Contains(k.Kinds, kind)
}

// anyTool stands for the name of a tool in the path of a key.
const anyTool = "<tool>"

// FileKeys returns every key of an agent's file, in the order of the documentation.
func FileKeys() []FileKey { return agentSchema().keys }

// ToolKeys returns every key of the definition of a tool, in the order of the documentation.
func ToolKeys() []FileKey { return toolSchema().keys }

//nolint:gochecknoglobals // built from constants, never change
var (
	agentSchema = sync.OnceValue(func() *fileSchema { return mustLoadSchema("schemas/agent.json") })
	toolSchema  = sync.OnceValue(func() *fileSchema { return mustLoadSchema("schemas/tool.json") })
)

// fileSchema is the schema of a kind of file.
type fileSchema struct {
	compiled *jsonschema.Schema
	document any
	keys     []FileKey
}

// schemaAddress is what errors call a schema.
const schemaAddress = "urn:bobbin:file"

// mustLoadSchema reads an embedded schema.
func mustLoadSchema(path string) *fileSchema {
	data, err := schemas.ReadFile(path)
	s := &fileSchema{}
	compiler := jsonschema.NewCompiler()
	compiler.RegisterFormat(&jsonschema.Format{Name: "tool time", Validate: func(value any) error {
		text, _ := value.(string)
		if d, err := time.ParseDuration(text); err != nil || d < 100*time.Millisecond || d > 10*time.Minute {
			return errors.New("is no such time")
		}
		return nil
	}})
	compiler.AssertFormat()
	if err == nil {
		s.document, err = jsonschema.UnmarshalJSON(bytes.NewReader(data))
	}
	if err == nil {
		err = compiler.AddResource(schemaAddress, s.document)
	}
	if err == nil {
		s.compiled, err = compiler.Compile(schemaAddress)
	}
	var root yaml.Node // which keeps the order
	if err == nil {
		err = yaml.Unmarshal(data, &root)
	}
	if err != nil {
		panic("agents: " + path + ": " + err.Error())
	}
	s.addKeys(root.Content[0], "")
	return s
}

// property is what a schema says of a key.
type property struct {
	Type       any             `yaml:"type"`
	Format     string          `yaml:"format"`
	Enum       []string        `yaml:"enum"`
	Minimum    *float64        `yaml:"minimum"`
	Maximum    *float64        `yaml:"maximum"`
	Meaning    string          `yaml:"description"`
	Default    string          `yaml:"x-default"`
	Allowed    string          `yaml:"x-allowed"`
	Kinds      []core.ToolKind `yaml:"x-kinds"`
	Required   []core.ToolKind `yaml:"x-required"`
	Properties yaml.Node       `yaml:"properties"`
	Additional yaml.Node       `yaml:"additionalProperties"`
}

// addKeys adds the keys of a schema of an object. Prefix ends with a dot, or is empty.
func (s *fileSchema) addKeys(node *yaml.Node, prefix string) {
	var object, each property
	_ = node.Decode(&object) // the schema is embedded, and tested
	_ = object.Additional.Decode(&each)
	if len(each.Properties.Content) > 0 {
		s.addKeys(&object.Additional, prefix+anyTool+".")
		return
	}
	for i := 0; i+1 < len(object.Properties.Content); i += 2 {
		path, value := prefix+object.Properties.Content[i].Value, object.Properties.Content[i+1]
		var p property
		_ = value.Decode(&p)
		if p.Meaning == "" {
			s.addKeys(value, path+".")
			continue
		}
		kind := map[any]string{"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "array": "list of texts", "object": "section"}[p.Type]
		switch {
		case p.Format != "":
			kind = "time"
		case p.Type == "object" && p.Additional.Kind != 0:
			kind = "section of texts"
		}
		k := FileKey{Path: path, Type: kind, Default: p.Default, Meaning: p.Meaning, Bounds: p.Allowed, Kinds: p.Kinds, Required: p.Required}
		switch {
		case k.Bounds != "":
		case len(p.Enum) > 0:
			k.Bounds = "`" + strings.Join(p.Enum, "`, `") + "`"
		case p.Maximum != nil:
			k.Bounds = formatBound(*p.Minimum) + " to " + formatBound(*p.Maximum)
		}
		s.keys = append(s.keys, k)
	}
}

func formatBound(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// check returns what is wrong with a value, in the order of the paths, which begin with that of the value.
func (s *fileSchema) check(value any, path string) core.Faults {
	var faults core.Faults
	if failed, ok := errors.AsType[*jsonschema.ValidationError](s.compiled.Validate(value)); ok {
		s.explain(failed, value, path, &faults)
	}
	slices.SortStableFunc(faults, func(a, b core.FieldError) int { return cmp.Compare(a.Field, b.Field) })
	return faults
}

// explain adds what the innermost errors say.
func (s *fileSchema) explain(e *jsonschema.ValidationError, value any, path string, faults *core.Faults) {
	for _, cause := range e.Causes {
		s.explain(cause, value, path, faults)
	}
	if len(e.Causes) > 0 {
		return
	}
	for _, part := range e.InstanceLocation {
		switch v := value.(type) {
		case map[string]any:
			value, path = v[part], strings.TrimPrefix(path+"."+part, ".")
		case []any:
			i, _ := strconv.Atoi(part)
			value, path = v[i], path+"["+part+"]"
		}
	}
	_, pointer, _ := strings.Cut(e.SchemaURL, "#")
	schema, _ := valueAt(map[string]any{"": s.document}, strings.ReplaceAll(pointer, "/", ".")).(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	below := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			faults.Add(below(name), "is not a known field; %s", suggestWord(name, slices.Collect(maps.Keys(properties))))
		}
	case *kind.Required:
		for _, name := range k.Missing {
			problem := "is missing"
			if missing, _ := properties[name].(map[string]any); missing["enum"] != nil {
				problem += "; use one of " + strings.Join(texts(missing["enum"]), ", ")
			}
			faults.Add(below(name), "%s", problem)
		}
	case *kind.Type:
		faults.Add(path, "%s", typeProblem(k, value, path))
	default:
		faults.Add(path, "%s", valueProblem(e.ErrorKind, value, schema))
	}
}

// typeProblem says which type a value must have.
func typeProblem(k *kind.Type, value any, path string) string {
	want := k.Want[0]
	shown, _ := json.Marshal(fmt.Sprint(value))
	switch {
	case value == nil:
		return "is empty; remove it"
	case want == "object":
		return "is a section: write its fields below it, indented"
	case want == "array":
		return fmt.Sprintf("is not a list; write %s: [one, two]", path)
	case k.Got == "object" || k.Got == "array":
		return "is one value, and not a list or a section"
	case want == "string":
		return core.Clip(string(shown), 60) + " is not text; put it in quotes"
	default:
		return core.Clip(string(shown), 60) + " is not " + map[string]string{"boolean": "true or false", "integer": "a whole number", "number": "a number"}[want]
	}
}

// valueProblem says what is wrong with a value of the right type, and what is allowed.
func valueProblem(problem jsonschema.ErrorKind, value any, schema map[string]any) string {
	allowed, _ := schema["x-allowed"].(string)
	if allowed = strings.ReplaceAll(allowed, "`", ""); allowed == "" {
		allowed = fmt.Sprintf("%v to %v", schema["minimum"], schema["maximum"])
	}
	if message, ok := schema["x-message"].(string); ok { // without the value, which may be a secret
		return message
	}
	switch k := problem.(type) {
	case *kind.Enum:
		word, words := fmt.Sprint(value), texts(schema["enum"])
		if word == "" {
			return "is empty; use one of " + strings.Join(words, ", ")
		}
		return fmt.Sprintf("%q does not exist; %s", core.Clip(word, 100), suggestWord(word, words))
	case *kind.Pattern:
		return fmt.Sprintf("%q is not allowed; use %s", core.Clip(k.Got, 100), allowed)
	case *kind.Format:
		return fmt.Sprintf("%q is not a time with a unit, such as 30s, from 100ms to 10m", core.Clip(fmt.Sprint(value), 60))
	case *kind.MinLength, *kind.MinItems:
		return "is empty; remove it"
	case *kind.MaxLength:
		return fmt.Sprintf("has %d characters; use at most %d", k.Got, k.Want)
	case *kind.MaxItems:
		return fmt.Sprintf("has %d entries; use at most %d", k.Got, k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("has %d entries; use at most %d", k.Got, k.Want)
	default:
		return fmt.Sprintf("is %v; use %s", value, allowed)
	}
}

// texts returns the texts of a list in a schema.
func texts(list any) (out []string) {
	items, _ := list.([]any)
	for _, item := range items {
		out = append(out, fmt.Sprint(item))
	}
	return out
}

// Setting is the value of a key for one agent.
type Setting struct {
	Path  string // as in the file; of a tool's settings with its name
	Value string // empty = none
	Set   bool   // the agent has it; false = what holds without
}

// Settings returns the value of every key for the agent, in the order of FileKeys. Settings of
// tools are those of the agent's tools.
func Settings(agent core.Agent) []Setting {
	value := jsonValue(agent)
	var out []Setting
	for _, k := range FileKeys() {
		for _, path := range concretePaths(k.Path, agent) {
			s := Setting{Path: path, Value: strings.ReplaceAll(k.Default, "`", "")}
			if set := valueAt(value, path); set != nil && set != "" && (path != "max_iterations" || agent.MaxIterations != 0) {
				s.Value, s.Set = displayValue(set), true
			}
			out = append(out, s)
		}
	}
	return out
}

// concretePaths returns the paths of a key for the agent's tools.
func concretePaths(path string, agent core.Agent) []string {
	if !strings.Contains(path, anyTool) {
		return []string{path}
	}
	field := path[strings.LastIndexByte(path, '.')+1:]
	var out []string
	for _, tool := range agent.Tools {
		if tool == core.ToolFetchURL || !slices.Contains(fetchSettings(), field) {
			out = append(out, strings.Replace(path, anyTool, tool, 1))
		}
	}
	return out
}

// jsonValue returns a value as it is in JSON.
func jsonValue(v any) (value any) {
	text, _ := json.Marshal(v) // texts, numbers, and JSON that was checked
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	_ = decoder.Decode(&value)
	return value
}

// valueAt returns the value at a path; nil if there is none.
func valueAt(value any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

// displayValue returns a value as people read it.
func displayValue(value any) string {
	switch v := value.(type) {
	case map[string]any:
		text, _ := json.Marshal(v)
		return string(text)
	case []any:
		list := texts(v)
		if slices.ContainsFunc(list, func(s string) bool { return strings.ContainsAny(s, ",\n\t ") }) {
			return fmt.Sprintf("%q", list)
		}
		return strings.Join(list, ", ")
	default:
		return fmt.Sprint(v)
	}
}
