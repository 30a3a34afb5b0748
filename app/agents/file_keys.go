package agents

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"bobbin/app/core"
)

// FileKey is a key of an agent's file that has a value. The table of keys is the source of
// docs/AGENTS.md, of `bobbin agents show`, and of the checks of words and ranges.
type FileKey struct {
	Path    string // as in the file, with dots; <tool> stands for the name of a tool
	Type    string // what its value is
	Default string // what holds without it, in Markdown; empty = nothing
	Meaning string // a sentence, in Markdown
	Bounds  string // the values that are allowed, in Markdown; empty = all of the type

	words  []string    // the values of a text; none = see Bounds
	within *[2]float64 // the least and the largest number; nil = see Bounds
	zero   bool        // 0 is allowed too
}

// anyTool stands for the name of a tool in the path of a key.
const anyTool = "<tool>"

// FileKeys returns every key of an agent's file, in the order of the documentation.
func FileKeys() []FileKey {
	var keys []FileKey
	for _, k := range slices.Concat(agentKeys(), parameterKeys(), contextKeys(), compactionKeys(), toolKeys()) {
		k.Type = typeName(fieldAt(reflect.TypeFor[core.Agent](), k.Path))
		switch {
		case k.Bounds != "":
		case len(k.words) > 0:
			k.Bounds = "`" + strings.Join(k.words, "`, `") + "`"
		case k.within != nil:
			k.Bounds = formatBound(k.within[0]) + " to " + formatBound(k.within[1])
		}
		keys = append(keys, k)
	}
	return keys
}

// formatBound returns a bound as it is written in a file.
func formatBound(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// fieldAt returns the type of the field of that path; nil if there is none.
func fieldAt(typ reflect.Type, path string) reflect.Type {
	for name := range strings.SplitSeq(path, ".") {
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		switch {
		case typ.Kind() == reflect.Map:
			typ = typ.Elem()
		case typ.Kind() != reflect.Struct:
			return nil
		default:
			field, ok := fieldsOf(reflect.New(typ).Elem())[name]
			if !ok {
				return nil
			}
			typ = field.Type()
		}
	}
	return typ
}

// typeName returns what people call a type.
func typeName(typ reflect.Type) string {
	if typ == nil {
		return ""
	}
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ {
	case reflect.TypeFor[core.Duration]():
		return "time"
	case reflect.TypeFor[json.RawMessage]():
		return "section"
	}
	switch typ.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "list of texts"
	case reflect.Map:
		return "section of texts"
	default:
		return "text"
	}
}

// Setting is the value of a key for one agent.
type Setting struct {
	Path  string // as in the file; of a tool's settings with its name
	Value string // empty = none
	Set   bool   // the agent has it; false = what holds without
}

// Settings returns the value of every key for the agent, in the order of FileKeys. Settings of
// tools are those of the agent's tools; known says which tool has which.
func Settings(agent core.Agent, known KnownParts) []Setting {
	var out []Setting
	for _, k := range FileKeys() {
		for _, path := range concretePaths(k.Path, agent, known) {
			s := Setting{Path: path, Value: strings.ReplaceAll(k.Default, "`", "")}
			if value, ok := valueAt(agent, path); ok {
				s.Value, s.Set = displayValue(value), true
			}
			out = append(out, s)
		}
	}
	return out
}

// concretePaths returns the paths of a key for the agent's tools.
func concretePaths(path string, agent core.Agent, known KnownParts) []string {
	if !strings.Contains(path, anyTool) {
		return []string{path}
	}
	field := path[strings.LastIndexByte(path, '.')+1:]
	var out []string
	for _, tool := range agent.Tools {
		if slices.Contains(ownSettings(), field) && !slices.Contains(known.Settings[tool], field) {
			continue
		}
		out = append(out, strings.Replace(path, anyTool, tool, 1))
	}
	return out
}

// valueAt returns the agent's value at a path, and whether the agent has one. A value that
// cannot be there, below nothing, is not valid.
func valueAt(agent core.Agent, path string) (value reflect.Value, set bool) {
	return fieldValue(reflect.ValueOf(agent), path)
}

// fieldValue is valueAt for any struct.
func fieldValue(value reflect.Value, path string) (_ reflect.Value, set bool) {
	for name := range strings.SplitSeq(path, ".") {
		switch value.Kind() {
		case reflect.Map:
			value = value.MapIndex(reflect.ValueOf(name))
		case reflect.Struct:
			value = fieldsOf(value)[name]
		}
		if !value.IsValid() {
			return value, false
		}
		if value.Kind() == reflect.Pointer {
			if value = value.Elem(); !value.IsValid() {
				return value, false
			}
			set = true
			continue
		}
		set = !value.IsZero()
	}
	return value, set
}

// displayValue returns a value as people read it.
func displayValue(value reflect.Value) string {
	switch v := value.Interface().(type) {
	case json.RawMessage:
		return string(v)
	case []string:
		quoted := slices.ContainsFunc(v, func(s string) bool { return strings.ContainsAny(s, ",\n\t ") })
		if quoted {
			return fmt.Sprintf("%q", v)
		}
		return strings.Join(v, ", ")
	case core.Duration:
		text, _ := v.MarshalText() // never fails
		return string(text)
	default:
		return fmt.Sprint(v)
	}
}
