package agents

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// checkAgent notes what is wrong with the agent, whose fields have the right form.
func (d *document) checkAgent(agent core.Agent, known KnownParts) {
	var faults core.Faults
	formatFaults(agent.ResponseFormat, &faults)
	if f := agent.ResponseFormat; f != nil && len(f.Schema) > 0 {
		if CheckSchema(&faults, "response_format.schema", f.Schema); len(faults) == 0 {
			if err := tools.CheckSchema(f.Schema); err != nil {
				d.faultAt("response_format.schema", "response_format.schema: %s", err)
			}
		}
	}
	for _, fault := range faults {
		d.faultAt(fault.Field, "%s %s", fault.Field, fault.Detail)
	}
	for i, name := range agent.FallbackModels {
		at := fmt.Sprintf("fallback_models[%d]", i)
		switch {
		case name == agent.Model:
			d.faultAt(at, "fallback model %q is the model itself; name another, or none", name)
		case slices.Contains(agent.FallbackModels[:i], name):
			d.faultAt(at, "fallback model %q is there twice", name)
		default:
			d.checkModel(at, "fallback ", name, known.Model)
		}
	}
	d.checkTools(agent.Tools, known)
	d.checkToolSettings(agent, known)
	for path, name := range map[string]*string{"context.summary_model": agent.Context.SummaryModel, "compaction.summary_model": agent.Compaction.SummaryModel} {
		if name != nil {
			d.checkModel(path, path+": ", *name, known.Model)
		}
	}
	_, err := contextwindow.ResolveLoop(agent.Context.Policy, agent.Compaction)
	for _, fault := range faultsIn(err) {
		d.faultAt("compaction."+fault.Field, "compaction.%s %s", fault.Field, fault.Detail)
	}
	_, err = contextwindow.Resolve(known.Global, agent.Context)
	for _, fault := range faultsIn(err) { // with the line of its field, else that of context
		key := strings.TrimPrefix(fault.Field, "context.")
		if path := "context." + key; d.hasField(path) {
			d.faultAt(path, "%s %s", path, fault.Detail)
			continue
		}
		d.faultAt("context", "context: %s %s", key, fault.Detail)
	}
	d.checkModels(agent, known)
}

// checkModel checks a model that the agent names beside its own. A model that is known and
// cannot be used here, for example without its key, is no fault: the agent works without it.
func (d *document) checkModel(at, prefix, name string, check func(string) (llm.Info, error)) {
	if name == "" || check == nil {
		return
	}
	if info, err := check(name); err != nil && info.Name == "" {
		d.faultAt(at, "%s%s", prefix, err)
	}
}

func (d *document) checkTools(tools []string, known KnownParts) {
	have := core.Agent{Definitions: slices.AppendSeq(slices.Clone(d.inlineTools), maps.Values(known.definitions))}
	isDefined := func(tool string) bool { // by its own name, or with its group
		_, ok := have.Definition(tool)
		return ok
	}
	for i, tool := range tools {
		at := fmt.Sprintf("tools[%d]", i)
		switch {
		case slices.Contains(tools[:i], tool):
			d.faultAt(at, "tool %q is there twice", tool)
		case isDefined(tool), known.broken[tool]:
		case known.Off[tool] != "":
			d.faultAt(at, "tool %q is switched off; %s", tool, known.Off[tool])
		case known.Tools == nil || slices.Contains(known.Tools, tool):
		case known.leftOut(tool) != "":
			d.off[tool] = known.leftOut(tool)
		default:
			names := slices.AppendSeq(slices.Clone(known.Tools), maps.Keys(known.definitions))
			for _, definition := range d.inlineTools {
				names = append(names, definition.Name)
			}
			d.faultAt(at, "tool %q does not exist; %s", tool, suggestWord(tool, names))
		}
	}
}

// faultsIn returns what contextwindow says is wrong; none for nil.
func faultsIn(err error) []core.FieldError {
	if e, ok := errors.AsType[*core.Error](err); ok {
		return e.Fields
	}
	return nil
}

// suggestWord says which of the words was meant, or which there are.
func suggestWord(word string, words []string) string {
	there := cmp.Or(strings.Join(slices.Sorted(slices.Values(words)), ", "), "none")
	return core.Suggest(word, words, "", "there are "+there)
}

// checkModels checks that the models take the agent's parameters, also those that cannot be used here.
func (d *document) checkModels(agent core.Agent, known KnownParts) {
	if known.Model == nil {
		return
	}
	for i, name := range append([]string{agent.Model}, agent.FallbackModels...) {
		info, _ := known.Model(name)
		which := "model"
		if i > 0 {
			which = "fallback model"
		}
		for _, p := range info.LackingFor(agent) {
			if p == llm.Tools && known.dropTools {
				continue
			}
			d.faultAt(p.Key(), "%s: the %s %s does not take %s; remove it, or choose another model", p.Key(), which, info.Name, p)
		}
	}
}

// fetchSettings are the fields of tool_settings that fetch_url alone has.
func fetchSettings() []string { return []string{"allow_hosts", "max_bytes"} }

// checkToolSettings checks the settings of each tool.
func (d *document) checkToolSettings(agent core.Agent, known KnownParts) {
	for _, tool := range slices.Sorted(maps.Keys(agent.ToolSettings)) {
		at := "tool_settings." + tool
		group, _, _ := strings.Cut(tool, core.ToolSeparator)
		switch {
		case slices.Contains(agent.Tools, tool), slices.Contains(agent.Tools, group):
			for _, field := range fetchSettings() {
				if path := at + "." + field; tool != core.ToolFetchURL && d.hasField(path) {
					d.faultAt(path, "%s: %s has no such setting; there are approval, max_output_bytes, timeout", path, tool)
				}
			}
		case known.Tools == nil || slices.Contains(known.Tools, tool) || known.Off[tool] != "":
			d.faultAt(at, "%s: the agent does not have the tool; add it to tools", at)
		default:
			d.faultAt(at, "%s: tool %q does not exist; %s", at, tool, suggestWord(tool, agent.Tools))
		}
	}
}

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

// CheckClientTool notes what is wrong with a tool that the client of a run executes.
func CheckClientTool(f *core.Faults, field string, t core.ClientTool) {
	if t.Name == "" || t.Name != tools.FitName(t.Name) {
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
	case len(schema) > tools.MaxSchemaBytes:
		f.Add(field, "has %d bytes; use at most %d", len(schema), tools.MaxSchemaBytes)
	case depth > tools.MaxSchemaDepth:
		f.Add(field, "has more than %d levels; make it flatter", tools.MaxSchemaDepth)
	case !bytes.HasPrefix(bytes.TrimSpace(schema), []byte("{")) || !json.Valid(schema):
		f.Add(field, "must be a JSON object")
	}
}
