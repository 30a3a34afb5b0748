package core

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// MaxTools is how many tools a request to a model has at most: OpenAI takes no more.
const MaxTools = 128

// Limits of the options of a run.
const (
	MaxRunOptions  = 256 << 10 // bytes as JSON
	MaxClientTools = MaxTools
)

// RunOptions are what one run does otherwise than its agent. They are kept with the run, so
// that it goes on with them after a crash and after a wait.
type RunOptions struct {
	ModelParameters                // those that are set override the agent's
	ToolChoice        ToolChoice   `json:"tool_choice,omitempty" max:"64" default:"auto" doc:"'auto', 'none', 'required', or the name of the tool that the model must call. Write 'function:<name>' for a tool that has one of these three names. 'required' and a tool's name apply to the first model call of the run only."`
	ParallelToolCalls *bool        `json:"parallel_tool_calls,omitempty" doc:"Whether one answer may have several tool calls."`
	Instructions      string       `json:"instructions,omitempty" max:"262144" doc:"A system block of this run alone, after the agent's."`
	Tools             []ClientTool `json:"tools,omitempty" max:"128" doc:"Tools that the client executes, besides the agent's own."`
	// Response is what a request of the Responses API says of its response; nil = nothing.
	Response *ResponseDetails `json:"response,omitempty" schema:"-"`
	// Since is the call of a client's tool with whose result the options came; empty = they hold from the
	// beginning.
	Since string `json:"since,omitempty" schema:"-"`
	// From is the event of the session after which they hold, and Earlier are those before: a response says the ones of its request.
	From    int64       `json:"from,omitempty" schema:"-"`
	Earlier *RunOptions `json:"earlier,omitempty" schema:"-"`
	// Lenient leaves out what the model does not take, as far as an answer is of use without it; else
	// that is an error.
	Lenient bool `json:"-"`
}

// Internal returns the name of a field that is set and that callers of the native API do not know; empty
// = none is.
func (o *RunOptions) Internal() string {
	switch {
	case o != nil && o.Response != nil:
		return "response"
	case o != nil && (o.Since != "" || o.From != 0 || o.Earlier != nil):
		return "since"
	}
	return ""
}

// Then returns the options that follow with the result of a call, after the event of the session.
func (o *RunOptions) Then(next RunOptions, call string, event int64) *RunOptions {
	was, same := o.At(event), next
	was.Since, same.Response, same.From, same.Earlier = "", was.Response, was.From, was.Earlier
	before, _ := EncodeJSON(was)
	if after, _ := EncodeJSON(same); bytes.Equal(before, after) {
		next = same
	} else {
		next.Response, next.From, next.Earlier = nil, event, o
	}
	next.Since = call
	return &next
}

// At returns the options after the event of the session; of event 0 the first ones.
func (o *RunOptions) At(event int64) RunOptions {
	for o != nil && event < o.From {
		o = o.Earlier
	}
	return *cmp.Or(o, &RunOptions{})
}

// StoredBytes returns what storing the options counts; nil counts nothing.
func (o *RunOptions) StoredBytes() int64 {
	if o == nil {
		return 0
	}
	text, _ := EncodeJSON(o) // they were checked
	return int64(len(text))
}

// ResponseDetails are what clients of the Responses API read again of their request. They change
// nothing in the run.
type ResponseDetails struct {
	Metadata   map[string]string `json:"metadata,omitempty"`
	PreviousID string            `json:"previous_response_id,omitempty"`
	Background bool              `json:"background,omitempty"`
	Stored     bool              `json:"store,omitempty"` // it can be read again, and continued: its session is kept from then on
}

// ClientTool is a tool that the client of a run executes itself: a call of it waits for the
// client's result.
type ClientTool struct {
	Name        string          `json:"name" pattern:"^[a-zA-Z0-9_-]{1,64}$" doc:"Not that of a tool of the agent."`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty" schema:"Object" doc:"JSON Schema of the arguments; at most 64 KiB, 32 levels. Absent = no arguments."`
	Strict      *bool           `json:"strict,omitempty" doc:"Whether calls must follow the schema exactly."`
}

// ToolChoice says whether a model may or must call tools. A value besides the constants is
// the name of the tool that it must call, or function: and the name.
type ToolChoice string

// Tool choices. Required, and the name of a tool, hold for the first model call of a run with the
// options: if they held for all, it would never end.
const (
	ToolChoiceAuto     ToolChoice = ""     // the model decides
	ToolChoiceNone     ToolChoice = "none" // it must answer in text; the tool list stays, so that the prefix stays cached
	ToolChoiceRequired ToolChoice = "required"
)

// ToolChoiceWordAuto is ToolChoiceAuto as callers may write it.
const ToolChoiceWordAuto ToolChoice = "auto"

// toolChoicePrefix begins the choice of a tool whose name is a word of ToolChoice. No name of a tool
// has a colon.
const toolChoicePrefix = "function:"

// ChooseTool returns the choice of the tool that the model must call.
func ChooseTool(name string) ToolChoice {
	if ToolChoice(name).Tool() == "" {
		return toolChoicePrefix + ToolChoice(name)
	}
	return ToolChoice(name)
}

// Tool returns the name of the tool that the model must call; empty if none is named.
func (c ToolChoice) Tool() string {
	switch c {
	case ToolChoiceAuto, ToolChoiceWordAuto, ToolChoiceNone, ToolChoiceRequired:
		return ""
	}
	if name, found := strings.CutPrefix(string(c), toolChoicePrefix); found && name != "" {
		return name
	}
	return string(c)
}

// Forced reports whether the model must call a tool.
func (c ToolChoice) Forced() bool { return c == ToolChoiceRequired || c.Tool() != "" }

// With returns the parameters with those of over that are set.
func (p ModelParameters) With(over ModelParameters) ModelParameters {
	p.Temperature, p.TopP, p.Seed = cmp.Or(over.Temperature, p.Temperature), cmp.Or(over.TopP, p.TopP), cmp.Or(over.Seed, p.Seed)
	p.MaxOutputTokens, p.ReasoningEffort = cmp.Or(over.MaxOutputTokens, p.MaxOutputTokens), cmp.Or(over.ReasoningEffort, p.ReasoningEffort)
	p.ResponseFormat = cmp.Or(over.ResponseFormat, p.ResponseFormat)
	if len(over.Stop) > 0 {
		p.Stop = over.Stop
	}
	return p
}

// HasClientTool reports whether the run's client executes the tool of that name.
func (r Run) HasClientTool(name string) bool {
	return r.Options != nil && slices.ContainsFunc(r.Options.Tools, func(t ClientTool) bool { return t.Name == name })
}
