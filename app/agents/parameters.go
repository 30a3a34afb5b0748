package agents

import (
	"bytes"
	"encoding/json"
	"regexp"

	"bobbin/app/core"
)

// Bounds of the JSON Schema of an answer or of arguments.
const (
	maxSchemaBytes = 64 << 10
	maxSchemaDepth = 32
)

// CheckParameters notes what is wrong with the parameters of a run, by the rules of agents'
// files. Field precedes the names of the parameters.
func CheckParameters(f *core.Faults, field string, p core.ModelParameters) {
	if p.ResponseFormat != nil && len(p.ResponseFormat.Schema) > 0 {
		CheckSchema(f, field+"response_format.schema", p.ResponseFormat.Schema)
		format := *p.ResponseFormat
		format.Schema, p.ResponseFormat = json.RawMessage("{}"), &format
	}
	value := jsonValue(p)
	if object, ok := value.(map[string]any); ok {
		object["name"] = "a" // which agents need
	}
	faults := agentSchema().check(value, "")
	formatFaults(p.ResponseFormat, &faults)
	for _, fault := range faults {
		f.Add(field+fault.Field, "%s", fault.Detail)
	}
}

// formatFaults adds what does not go together in the format of answers.
func formatFaults(f *core.ResponseFormat, faults *core.Faults) {
	const at = "response_format"
	switch {
	case f == nil || f.Type == "": // a fault already
	case f.Type == core.FormatJSONSchema && len(f.Schema) == 0:
		faults.Add(at+".schema", "is missing; write the JSON Schema of the answer")
	case f.Type != core.FormatJSONSchema:
		for name, has := range map[string]bool{"name": f.Name != "", "schema": len(f.Schema) > 0, "strict": f.Strict != nil} {
			if has {
				faults.Add(at+"."+name, "is for type json_schema only; remove it, or change the type")
			}
		}
	}
}

// schemaName is what a tool may be called, as OpenAI takes it.
const schemaName = `^[a-zA-Z0-9_-]{1,64}$`

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
