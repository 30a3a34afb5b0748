package core

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Agent is a configured agent: what it is told, which model and tools it has, and
// how its context is kept. Agents come from YAML; a run keeps the agent that it began with.
type Agent struct {
	Name           string             `json:"name"`
	Description    string             `json:"description"`
	Model          string             `json:"model" doc:"Empty = the default model."`
	FallbackModels []string           `json:"fallback_models,omitempty"`
	SystemPrompt   string             `json:"system_prompt"`
	Tools          []string           `json:"tools,omitempty"`
	ToolSettings   ToolSettings       `json:"tool_settings,omitempty"`
	MaxIterations  int                `json:"max_iterations" doc:"Model calls of a run."`
	Context        ContextSettings    `json:"context" doc:"The fields set in its file."`
	Compaction     CompactionSettings `json:"compaction"`
	// ModelParameters are keys of the file like the others, not a section.
	ModelParameters
	// Definitions are those of its tools that files describe.
	Definitions []ToolDefinition `json:"-"`
	// LeftOut says of each tool of its file that tools.allow does not have why the agent is without it.
	LeftOut []string `json:"-"`
	Version string   `json:"version" doc:"A hash of everything above."`
}

// AgentDetail is an agent with the models that a message to it may choose.
type AgentDetail struct {
	Agent
	Models []ModelChoice `json:"models" doc:"The models that a message to the agent may choose."`
}

// ModelChoice is a model that a message may choose.
type ModelChoice struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	Window   int    `json:"window" doc:"Context window in tokens."`
	Images   bool   `json:"images" doc:"It sees images; other models get descriptions."`
	Default  bool   `json:"default,omitempty" doc:"The agent's own model."`
}

// DefaultMaxIterations bounds the model calls of a run when an agent does not.
const DefaultMaxIterations = 10

// ContextSettings is the part "context" of an agent's file: a preset's name and
// the fields that override it. A nil field keeps the preset's value.
type ContextSettings struct {
	Policy                   string   `json:"policy,omitempty" yaml:"policy"` // window, budget, sliding, ratio or off; empty = window
	AutoSummarize            *bool    `json:"auto_summarize,omitempty" yaml:"auto_summarize"`
	UsageThreshold           *float64 `json:"usage_threshold,omitempty" yaml:"usage_threshold"` // share of the window
	LandAt                   *float64 `json:"land_at,omitempty" yaml:"land_at"`                 // share of the trigger
	MaxMessagesBeforeSummary *int     `json:"max_messages_before_summary,omitempty" yaml:"max_messages_before_summary"`
	MaxTokensBeforeSummary   *int     `json:"max_tokens_before_summary,omitempty" yaml:"max_tokens_before_summary"`
	MaxUnsummarizedMessages  *int     `json:"max_unsummarized_messages,omitempty" yaml:"max_unsummarized_messages"`
	WindowMessages           *int     `json:"window_messages,omitempty" yaml:"window_messages"` // sliding: how many stay in full
	MinRecentMessages        *int     `json:"min_recent_messages,omitempty" yaml:"min_recent_messages"`
	MaxContextTokens         *int     `json:"max_context_tokens,omitempty" yaml:"max_context_tokens"`
	TargetContextTokens      *int     `json:"target_context_tokens,omitempty" yaml:"target_context_tokens"`
	ResponseReserve          *int     `json:"response_reserve,omitempty" yaml:"response_reserve"` // tokens
	SummaryModel             *string  `json:"summary_model,omitempty" yaml:"summary_model"`
	Strategy                 *string  `json:"strategy,omitempty" yaml:"strategy"` // llm, hybrid, native or extractive
	MaxSummaryTokens         *int     `json:"max_summary_tokens,omitempty" yaml:"max_summary_tokens"`
	MaxSummaryShare          *float64 `json:"max_summary_share,omitempty" yaml:"max_summary_share"` // of the available tokens
	Timing                   *string  `json:"timing,omitempty" yaml:"timing"`                       // inline, after_run or background
	SummaryRole              *string  `json:"summary_role,omitempty" yaml:"summary_role"`           // system or user
	Recall                   *string  `json:"recall,omitempty" yaml:"recall"`                       // auto, tool or off
	RecallShare              *float64 `json:"recall_share,omitempty" yaml:"recall_share"`           // of the window
	StandingInstructions     *bool    `json:"standing_instructions,omitempty" yaml:"standing_instructions"`
}

// CompactionSettings is the part "compaction" of an agent's file: how the tool
// loop of one run is kept small. A nil field keeps the default.
type CompactionSettings struct {
	Enabled              *bool   `json:"enabled,omitempty" yaml:"enabled"`
	ThresholdIterations  *int    `json:"threshold_iterations,omitempty" yaml:"threshold_iterations"`
	KeepRecentIterations *int    `json:"keep_recent_iterations,omitempty" yaml:"keep_recent_iterations"`
	MinTokens            *int    `json:"min_tokens,omitempty" yaml:"min_tokens"`
	MaxContextTokens     *int    `json:"max_context_tokens,omitempty" yaml:"max_context_tokens"`
	SummaryModel         *string `json:"summary_model,omitempty" yaml:"summary_model"`
}

// ToolSettings is the part "tool_settings" of an agent's file: settings of its tools,
// by their names.
type ToolSettings map[string]ToolSetting

// ToolSetting says how an agent uses one tool. A field that is not set keeps what
// holds for all agents. The first three are for every tool, the others for those
// that say so (tools.Configurable).
type ToolSetting struct {
	Approval       ApprovalMode `json:"approval,omitempty"`         // whether a person must agree to a call; empty = none must, but see WithToolDefaults
	Timeout        Duration     `json:"timeout,omitempty"`          // of one call
	MaxOutputBytes int          `json:"max_output_bytes,omitempty"` // of a result that prompts show whole
	AllowHosts     []string     `json:"allow_hosts,omitempty"`      // that fetch_url may ask; empty = all
	MaxBytes       int          `json:"max_bytes,omitempty"`        // that fetch_url reads of a page
}

// HasTool reports whether a name is that of a tool of the agent, or belongs to a group of its
// tools: server__tool.
func (a Agent) HasTool(name string) bool {
	group, _, _ := strings.Cut(name, ToolSeparator)
	return slices.Contains(a.Tools, name) || slices.Contains(a.Tools, group)
}

// ToolFetchURL is the name of the tool by which an agent reads web pages.
const ToolFetchURL = "fetch_url"

// WithToolDefaults returns the agent with what holds for its tools where its file says
// nothing: fetch_url that may ask all hosts needs an approval, as what an agent reads can
// make it send what it knows to any of them.
func (a Agent) WithToolDefaults() Agent {
	s := a.ToolSettings[ToolFetchURL]
	if slices.Contains(a.Tools, ToolFetchURL) && len(s.AllowHosts) == 0 && s.Approval == "" {
		s.Approval = ApprovalFirst
		settings := ToolSettings{}
		maps.Copy(settings, a.ToolSettings)
		settings[ToolFetchURL], a.ToolSettings = s, settings
	}
	return a
}

// SendsAnywhere reports whether the agent may send to any host what a text that it reads
// makes it send, without a person who agrees.
func (a Agent) SendsAnywhere() bool {
	s := a.ToolSettings[ToolFetchURL]
	return slices.Contains(a.Tools, ToolFetchURL) && len(s.AllowHosts) == 0 && s.Approval == ApprovalNever
}

// AgentChange is what became of an agent's file when the agents were read again.
type AgentChange string

// What may become of an agent's file.
const (
	AgentAdded     AgentChange = "added"
	AgentChanged   AgentChange = "changed"
	AgentUnchanged AgentChange = "unchanged"
	AgentRemoved   AgentChange = "removed"
	AgentBroken    AgentChange = "broken" // the agent that came from the file before stays
)

// AgentFile is an agent's file, or that of a tool, when the agents were read again.
type AgentFile struct {
	File     string      `json:"file"`
	Change   AgentChange `json:"change"`
	Agent    string      `json:"agent,omitempty"`    // that the server has from the file, or had; empty = none
	Tool     string      `json:"tool,omitempty"`     // the same of a file that describes a tool
	Version  string      `json:"version,omitempty"`  // of that agent
	Problems []string    `json:"problems,omitempty"` // of a broken file, each with file, line and column
}

// ModelParameters are the keys of an agent's file that go to its model with each request
// for an answer. A field that is not set leaves the choice to the provider.
type ModelParameters struct {
	Temperature     *float64        `json:"temperature,omitempty" max:"2"`
	TopP            *float64        `json:"top_p,omitempty" max:"1"`
	MaxOutputTokens int             `json:"max_output_tokens,omitempty" doc:"Maximum tokens of an answer." max:"1000000"`
	Stop            []string        `json:"stop,omitempty" max:"4" doc:"Of at most 256 bytes each."`
	Seed            *int            `json:"seed,omitempty" max:"2147483647"`
	ReasoningEffort string          `json:"reasoning_effort,omitempty" enum:",none,minimal,low,medium,high,xhigh"` // empty = the model's own
	ResponseFormat  *ResponseFormat `json:"response_format,omitempty"`
}

// ResponseFormat says in which form a model answers.
type ResponseFormat struct {
	Type   FormatType      `json:"type" enum:"text,json_object,json_schema"`
	Name   string          `json:"name,omitempty"`                   // of the schema; empty = DefaultSchemaName
	Schema json.RawMessage `json:"schema,omitempty" schema:"Object"` // JSON Schema of the answer, for FormatJSONSchema
	Strict *bool           `json:"strict,omitempty"`                 // nil = the provider's default
}

// FormatType is the kind of a ResponseFormat.
type FormatType string

// The kinds of formats.
const (
	FormatText       FormatType = "text"
	FormatJSONObject FormatType = "json_object"
	FormatJSONSchema FormatType = "json_schema"
)

// DefaultSchemaName is the name of a schema that has none.
const DefaultSchemaName = "answer"

// GraphView is an agent's graph for showing: what can follow what.
type GraphView struct {
	Nodes []GraphNode `json:"nodes"` // in the order in which they were added; START and END are __start__ and __end__
	Edges []GraphEdge `json:"edges"`
}

// GraphNode is one node of a GraphView.
type GraphNode struct {
	ID string `json:"id"`
}

// GraphEdge leads from one node to another.
type GraphEdge struct {
	Source      string `json:"source"`
	Target      string `json:"target"`
	Conditional bool   `json:"conditional"`     // taken only if the state asks for it
	Label       string `json:"label,omitempty"` // when it is taken
}
