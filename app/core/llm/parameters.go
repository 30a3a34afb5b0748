package llm

import (
	"slices"
	"strings"

	"bobbin/app/core"
)

// Parameter is a parameter of a request that not every model takes, by its key in an
// agent's file.
type Parameter string

// The parameters that a model may lack.
const (
	Temperature     Parameter = "temperature"
	HighTemperature Parameter = "temperature over 1"
	TopP            Parameter = "top_p"
	TopPBeside      Parameter = "top_p beside temperature" // one of the two is taken
	Stop            Parameter = "stop"
	BlankStop       Parameter = "stop of white space"
	Seed            Parameter = "seed"
	ReasoningEffort Parameter = "reasoning_effort"
	JSONObject      Parameter = "response_format json_object"
	JSONSchema      Parameter = "response_format json_schema"
	Tools           Parameter = "tools"
	StrictTools     Parameter = "tools with strict"
	ForcedTools     Parameter = "tool_choice required, or of one tool"
	ParallelTools   Parameter = "parallel_tool_calls" // false: at most one call an answer
)

// Key returns the key of an agent's file that sets the parameter.
func (p Parameter) Key() string {
	key, _, _ := strings.Cut(string(p), " ")
	return key
}

// Option returns the name of the parameter among the options of a run.
func (p Parameter) Option() string {
	if p == StrictTools {
		return "strict"
	}
	return p.Key()
}

// Lacking returns which of the parameters the model does not take, in the order of the
// constants.
func (i Info) Lacking(p core.ModelParameters) []Parameter {
	return slices.DeleteFunc(setParameters(p), func(p Parameter) bool { return !slices.Contains(i.Lacks, p) })
}

// setParameters returns the parameters that are set.
func setParameters(p core.ModelParameters) []Parameter {
	format := core.FormatText
	if p.ResponseFormat != nil {
		format = p.ResponseFormat.Type
	}
	blank := func(text string) bool { return strings.TrimSpace(text) == "" }
	var out []Parameter
	for _, wanted := range []struct {
		parameter Parameter
		set       bool
	}{
		{Temperature, p.Temperature != nil},
		{HighTemperature, p.Temperature != nil && *p.Temperature > 1},
		{TopP, p.TopP != nil},
		{TopPBeside, p.TopP != nil && p.Temperature != nil},
		{Stop, len(p.Stop) > 0},
		{BlankStop, slices.ContainsFunc(p.Stop, blank)},
		{Seed, p.Seed != nil},
		{ReasoningEffort, p.ReasoningEffort != ""},
		{JSONObject, format == core.FormatJSONObject},
		{JSONSchema, format == core.FormatJSONSchema},
	} {
		if wanted.set {
			out = append(out, wanted.parameter)
		}
	}
	return out
}

// LackingFor returns what the agent sets and the model does not take: its parameters, and
// tools.
func (i Info) LackingFor(agent core.Agent) []Parameter {
	out := i.Lacking(agent.ModelParameters)
	if len(agent.Tools) > 0 && slices.Contains(i.Lacks, Tools) {
		out = append(out, Tools)
	}
	return out
}

// LackingForRun returns what keeps the model from answering a run of the agent with the
// options: what an answer needs (Binding), and what the options themselves set.
func (i Info) LackingForRun(agent core.Agent, o core.RunOptions) []Parameter {
	own := setParameters(o.ModelParameters)
	agent.ModelParameters = agent.ModelParameters.With(o.ModelParameters)
	out := slices.DeleteFunc(i.LackingFor(agent), func(p Parameter) bool {
		return !p.Binding() && !slices.ContainsFunc(own, func(set Parameter) bool { return set.Key() == p.Key() })
	})
	hasTools := len(agent.Tools)+len(o.Tools) > 0
	strict := func(t core.ClientTool) bool { return t.Strict != nil && *t.Strict }
	for _, wanted := range []struct {
		parameter Parameter
		set       bool
	}{
		{Tools, len(agent.Tools) == 0 && len(o.Tools) > 0},
		{StrictTools, slices.ContainsFunc(o.Tools, strict)},
		{ForcedTools, hasTools && o.ToolChoice.Forced()},
		{ParallelTools, hasTools && o.ParallelToolCalls != nil && !*o.ParallelToolCalls},
	} {
		if wanted.set && i.LacksParameter(wanted.parameter) {
			out = append(out, wanted.parameter)
		}
	}
	return out
}

// LacksParameter reports whether the model does not take the parameter. A model without a tool choice
// cannot be forced to call a tool.
func (i Info) LacksParameter(p Parameter) bool {
	return slices.Contains(i.Lacks, p) || p == ForcedTools && i.NoToolChoice
}

// Binding reports whether an answer without the parameter is not what was asked for. The
// others only tune the answer.
func (p Parameter) Binding() bool {
	return p.Key() == Stop.Key() || p == JSONObject || p == JSONSchema || p == Tools || p == ForcedTools
}

// jsonInstruction is for models that have no JSON mode.
const jsonInstruction = "Answer with one JSON object and nothing else, without a code fence."

// LeaveOut returns the options without the parameter, or with what comes closest to it; false = there
// is nothing that an answer could be without it.
func (p Parameter) LeaveOut(o core.RunOptions) (core.RunOptions, bool) {
	switch p {
	case StrictTools:
		o.Tools = slices.Clone(o.Tools)
		for i := range o.Tools {
			o.Tools[i].Strict = nil
		}
	case ForcedTools:
		o.ToolChoice = core.ToolChoiceAuto
	case ParallelTools:
		o.ParallelToolCalls = nil
	case JSONObject:
		o.Instructions = strings.TrimPrefix(o.Instructions+"\n\n"+jsonInstruction, "\n\n")
		o.ResponseFormat = nil
	default:
		o.ModelParameters = p.without(o.ModelParameters)
		return o, !p.Binding()
	}
	return o, true
}

// without returns the parameters without this one.
func (p Parameter) without(m core.ModelParameters) core.ModelParameters {
	switch p {
	case Temperature, HighTemperature:
		m.Temperature = nil
	case TopP, TopPBeside:
		m.TopP = nil
	case Stop, BlankStop:
		m.Stop = nil
	case Seed:
		m.Seed = nil
	case ReasoningEffort:
		m.ReasoningEffort = ""
	case JSONObject, JSONSchema:
		m.ResponseFormat = nil
	}
	return m
}

// WithParameters returns the request with the parameters, besides the output limit, which is
// planned. Parameters that the model does not take are left out, those of tools as well: a
// caller may choose another model than the agent's, and a fallback may take its place.
func (r Request) WithParameters(p core.ModelParameters, model Info) Request {
	for _, lacking := range model.Lacking(p) {
		p = lacking.without(p)
	}
	r.Temperature, r.TopP, r.Stop, r.Seed = p.Temperature, p.TopP, p.Stop, p.Seed
	r.ReasoningEffort, r.ResponseFormat = p.ReasoningEffort, p.ResponseFormat
	if slices.Contains(model.Lacks, ParallelTools) {
		r.ParallelToolCalls = nil
	}
	if slices.Contains(model.Lacks, StrictTools) {
		r.Tools = slices.Clone(r.Tools)
		for i := range r.Tools {
			r.Tools[i].Strict = nil
		}
	}
	return r
}
