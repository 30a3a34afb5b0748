package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"

	"bobbin/app/core"
)

// schemaName is what a schema or a tool may be called, as OpenAI takes it.
const schemaName = `^[a-zA-Z0-9_-]{1,64}$`

// CheckParameters notes what is wrong with the parameters of a run, by the rules of agents'
// files. Field precedes the names of the parameters.
func CheckParameters(f *core.Faults, field string, p core.ModelParameters) {
	agent := core.Agent{ModelParameters: p}
	isSet := func(path string) bool {
		value, set := valueAt(agent, path)
		return set || value.IsValid() && value.Kind() == reflect.Pointer
	}
	for _, k := range FileKeys() {
		if !isParameter(k.Path) || !isSet(k.Path) {
			continue
		}
		if problem := k.problemOf(valueAt(agent, k.Path)); problem != "" {
			f.Add(field+k.Path, "%s", problem)
		}
	}
	for _, fault := range parameterFaults(p, isSet) {
		f.Add(field+fault.Field, "%s", fault.Detail)
	}
	if p.ResponseFormat != nil && len(p.ResponseFormat.Schema) > 0 {
		CheckSchema(f, field+"response_format.schema", p.ResponseFormat.Schema)
	}
}

// isParameter reports whether the key of that path is a parameter of models.
func isParameter(path string) bool {
	for _, k := range parameterKeys() {
		if k.Path == path {
			return true
		}
	}
	return false
}

// parameterFaults returns what is wrong with the parameters that are more than a word or a
// number. Has says which keys there are.
func parameterFaults(p core.ModelParameters, has func(path string) bool) (out core.Faults) {
	if n := len(p.Stop); n > maxStops {
		out.Add("stop", "has %d texts; use 1 to %d", n, maxStops)
	}
	for i, text := range p.Stop {
		if len(text) > maxStopBytes {
			out.Add(fmt.Sprintf("stop[%d]", i), "has %d bytes; use at most %d", len(text), maxStopBytes)
		}
	}
	if p.ResponseFormat == nil {
		return out
	}
	f, at := *p.ResponseFormat, "response_format"
	if !has(at + ".type") {
		out.Add(at+".type", "is missing; use one of text, json_object, json_schema")
		return out
	}
	if has(at+".name") && !regexp.MustCompile(schemaName).MatchString(f.Name) {
		out.Add(at+".name", "%q is not allowed; use 1 to 64 letters, digits, - and _", core.Clip(f.Name, 100))
	}
	switch {
	case f.Type == core.FormatJSONSchema && !has(at+".schema"):
		out.Add(at+".schema", "is missing; write the JSON Schema of the answer")
	case f.Type != core.FormatJSONSchema:
		for _, field := range []string{"name", "schema", "strict"} {
			if path := at + "." + field; has(path) {
				out.Add(path, "is for type json_schema only; remove it, or change the type")
			}
		}
	}
	return out
}

// CheckClientTool notes what is wrong with a tool that the client of a run executes.
func CheckClientTool(f *core.Faults, field string, t core.ClientTool) {
	if !regexp.MustCompile(schemaName).MatchString(t.Name) {
		f.Add(field+".name", "%q is not allowed; use 1 to 64 letters, digits, - and _", core.Clip(t.Name, 100))
	}
	if len(t.Parameters) > 0 {
		CheckSchema(f, field+".parameters", t.Parameters)
	}
}

// CheckSchema notes what is wrong with a JSON Schema: its form and its size, not its words.
func CheckSchema(f *core.Faults, field string, schema json.RawMessage) {
	_, depth := core.JSONSize(schema)
	switch {
	case len(schema) > maxSchemaBytes:
		f.Add(field, "has %d bytes; use at most %d", len(schema), maxSchemaBytes)
	case depth > maxSchemaDepth:
		f.Add(field, "has more than %d levels; make it flatter", maxSchemaDepth)
	case !bytes.HasPrefix(bytes.TrimSpace(schema), []byte("{")) || !json.Valid(schema):
		f.Add(field, "must be a JSON object")
	}
}
