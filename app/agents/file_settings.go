package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"bobbin/app/core"
)

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
