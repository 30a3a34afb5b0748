package responses

import (
	"encoding/json"

	"bobbin/app/core"
	"bobbin/app/core/llm/providerhttp"
)

// request is the body of a request. The order of the members is part of what the API keeps in its cache.
type request struct {
	Instructions      string         `json:"instructions,omitempty"`
	MaxOutputTokens   int            `json:"max_output_tokens,omitempty"`
	ParallelToolCalls *bool          `json:"parallel_tool_calls,omitempty"`
	Store             bool           `json:"store"`
	Temperature       *float64       `json:"temperature,omitempty"`
	TopP              *float64       `json:"top_p,omitempty"`
	Include           []string       `json:"include,omitempty"`
	Input             []item         `json:"input"`
	Model             string         `json:"model"`
	Reasoning         reasoning      `json:"reasoning,omitzero"`
	Text              textConfig     `json:"text,omitzero"`
	ToolChoice        any            `json:"tool_choice,omitempty"` // a word or the item of a tool
	Tools             []functionTool `json:"tools,omitempty"`
	Stream            bool           `json:"stream"`
}

type reasoning struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary,omitempty"`
}

type textConfig struct {
	Format *core.ResponseFormat `json:"format,omitempty"`
}

type functionTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// item is an item of the input or of the output; its type, or its role, says which members it has.
type item struct {
	ID               string         `json:"id,omitempty"`
	Summary          []part         `json:"summary,omitzero"` // of reasoning; the API wants a list, even if it is empty
	EncryptedContent string         `json:"encrypted_content,omitempty"`
	Arguments        string         `json:"arguments,omitempty"`
	Output           *string        `json:"output,omitempty"`
	CallID           string         `json:"call_id,omitempty"`
	Name             string         `json:"name,omitempty"`
	Content          any            `json:"content,omitempty"` // a text or a list of parts
	Phase            string         `json:"phase,omitempty"`
	Status           string         `json:"status,omitempty"`
	Tools            []functionTool `json:"tools,omitempty"`
	Role             string         `json:"role,omitempty"`
	Type             string         `json:"type,omitempty"`
}

type part struct {
	Annotations []string `json:"annotations,omitzero"` // of a text of the model: an empty list
	Detail      string   `json:"detail,omitempty"`
	FileData    string   `json:"file_data,omitempty"`
	Filename    string   `json:"filename,omitempty"`
	ImageURL    string   `json:"image_url,omitempty"`
	Text        string   `json:"text,omitempty"`
	Type        string   `json:"type"`
}

// event is an event of a stream.
type event struct {
	Type         string          `json:"type"`
	OutputIndex  int             `json:"output_index"`
	SummaryIndex int             `json:"summary_index"`
	Delta        string          `json:"delta"`
	Item         item            `json:"item"`
	Response     response        `json:"response"`
	Error        json.RawMessage `json:"error"`
}

type response struct {
	Object string          `json:"object"`
	Status string          `json:"status"`
	Model  string          `json:"model"`
	Error  json.RawMessage `json:"error"`
	Output []item          `json:"output"`
	Usage  struct {
		InputTokens  int `json:"input_tokens"`
		OutputTokens int `json:"output_tokens"`
		InputDetails struct {
			Cached     int `json:"cached_tokens"`
			CacheWrite int `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		OutputDetails struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Dropped providerhttp.Transformations `json:"input_transformations"`
}
