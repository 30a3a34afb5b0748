package openai

import (
	"cmp"

	"bobbin/app/core"
)

// responseShape is what all versions of a response have in common.
type responseShape struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	CreatedAt          int64             `json:"created_at"`
	Status             string            `json:"status"`
	Background         bool              `json:"background"`
	Error              *responseError    `json:"error"`
	IncompleteDetails  *incomplete       `json:"incomplete_details"`
	Instructions       *string           `json:"instructions"`
	MaxOutputTokens    *int              `json:"max_output_tokens"`
	Model              string            `json:"model"`
	Output             []outputItem      `json:"output"`
	ParallelToolCalls  bool              `json:"parallel_tool_calls"`
	PreviousResponseID *string           `json:"previous_response_id"`
	Conversation       responseOwner     `json:"conversation"`
	Store              bool              `json:"store"`
	Temperature        *float64          `json:"temperature"`
	TopP               *float64          `json:"top_p"`
	ToolChoice         any               `json:"tool_choice"` // a word, or the function that must be called
	Tools              []responseTool    `json:"tools"`
	Truncation         string            `json:"truncation"`
	Usage              *responseUsage    `json:"usage"`
	Metadata           map[string]string `json:"metadata"`
}

type responseOwner struct {
	ID string `json:"id"`
}

type responseError struct {
	Type    string  `json:"type"` // some clients read no error without type and param
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Param   *string `json:"param"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

type responseUsage struct {
	InputTokens   int             `json:"input_tokens"`
	InputDetails  cachedTokens    `json:"input_tokens_details"`
	OutputTokens  int             `json:"output_tokens"`
	OutputDetails reasoningTokens `json:"output_tokens_details"`
	TotalTokens   int             `json:"total_tokens"`
}

type reasoningTokens struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// newResponseShape returns the response of a run as far as the run says it, with what its request says:
// the details, or nil for those that the run has.
func newResponseShape(b activeRun, details *core.ResponseDetails) *responseShape {
	options := b.run.Options.At(b.from.After)
	s := &responseShape{
		ID: responseID(b), Object: "response", CreatedAt: b.run.CreatedAt.Unix(), Status: "in_progress", Model: b.run.Agent, Output: []outputItem{},
		ParallelToolCalls: options.ParallelToolCalls == nil || *options.ParallelToolCalls, Conversation: responseOwner{conversationPrefix + string(b.run.SessionID)},
		Store: true, Temperature: options.Temperature, TopP: options.TopP, ToolChoice: cmp.Or(options.ToolChoice, core.ToolChoiceWordAuto), Tools: []responseTool{},
		Truncation: "disabled", Metadata: map[string]string{},
	}
	if name := options.ToolChoice.Tool(); name != "" {
		s.ToolChoice = responseTool{Type: "function", ClientTool: core.ClientTool{Name: name}}
	}
	if b.run.Model != "" {
		s.Model += "/" + b.run.Model
	}
	if options.Instructions != "" {
		s.Instructions = &options.Instructions
	}
	if options.MaxOutputTokens != 0 {
		s.MaxOutputTokens = &options.MaxOutputTokens
	}
	for _, t := range options.Tools {
		s.Tools = append(s.Tools, responseTool{Type: "function", ClientTool: t})
	}
	if details == nil && b.from.After == 0 { // those of a response that goes on are not kept
		details = options.Response
	}
	if details == nil {
		return s
	}
	s.Background = details.Background
	if details.PreviousID != "" {
		s.PreviousResponseID = &details.PreviousID
	}
	if details.Metadata != nil {
		s.Metadata = details.Metadata
	}
	return s
}

// unfinished returns the response of a run that has not ended.
func (s *responseShape) unfinished(run core.Run) responseShape {
	out := *s
	if run.Status == core.RunQueued {
		out.Status = "queued"
	}
	return out
}
