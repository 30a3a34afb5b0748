package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// chunk is one event of a stream, or the whole answer of a server that does not
// stream.
type chunk struct {
	Object  string          `json:"object"`
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index        int             `json:"index"`
	Delta        *piece          `json:"delta"`
	Message      *piece          `json:"message"`
	FinishReason string          `json:"finish_reason"`
	Usage        *usage          `json:"usage"` // Moonshot puts it here
	Error        json.RawMessage `json:"error"` // OpenRouter
}

// piece is a delta, or a whole message.
type piece struct {
	Content          content    `json:"content"`
	Refusal          string     `json:"refusal"`
	ReasoningContent content    `json:"reasoning_content"` // DeepSeek, vLLM, llama.cpp
	Reasoning        content    `json:"reasoning"`         // OpenRouter, Ollama, newer vLLM
	ToolCalls        []callWire `json:"tool_calls"`
}

type callWire struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string  `json:"name"`
		Arguments rawText `json:"arguments"`
	} `json:"function"`
	ExtraContent struct {
		Google struct {
			ThoughtSignature string `json:"thought_signature"`
		} `json:"google"`
	} `json:"extra_content"`
}

// content is text, which some servers (Mistral's reasoning models) send as a list
// of typed parts.
type content struct {
	text      string
	reasoning string // parts of the type thinking
}

// UnmarshalJSON reads a string, a list of parts, or null.
func (c *content) UnmarshalJSON(raw []byte) error {
	if raw[0] != '[' {
		return providerhttp.IgnoreType(readString(raw, &c.text))
	}
	var parts []struct {
		Type     string  `json:"type"`
		Text     string  `json:"text"`
		Thinking content `json:"thinking"`
	}
	if err := providerhttp.IgnoreType(json.Unmarshal(raw, &parts)); err != nil {
		return err
	}
	for _, p := range parts {
		c.text += p.Text
		c.reasoning += p.Thinking.text
	}
	return nil
}

// rawText is text, or the JSON of another value: some servers send the arguments of a
// tool as an object.
type rawText string

// UnmarshalJSON reads a string, null, or keeps the JSON.
func (t *rawText) UnmarshalJSON(raw []byte) error {
	switch {
	case raw[0] == '"':
		return json.Unmarshal(raw, (*string)(t))
	case string(raw) != "null":
		*t = rawText(raw)
	}
	return nil
}

type usage struct {
	PromptTokens        int `json:"prompt_tokens"`
	CompletionTokens    int `json:"completion_tokens"`
	PromptTokensDetails struct {
		CachedTokens     int `json:"cached_tokens"`
		CacheWriteTokens int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionTokensDetails struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	PromptCacheHitTokens int `json:"prompt_cache_hit_tokens"` // DeepSeek
}

// toCore returns the usage; nil if it is empty.
func (u *usage) toCore() *core.Usage {
	if u == nil || (u.PromptTokens <= 0 && u.CompletionTokens <= 0) {
		return nil
	}
	details := u.PromptTokensDetails
	return &core.Usage{
		InputTokens: max(u.PromptTokens, 0), OutputTokens: max(u.CompletionTokens, 0), ReasoningTokens: max(u.CompletionTokensDetails.ReasoningTokens, 0),
		CacheReadTokens: max(details.CachedTokens, u.PromptCacheHitTokens, 0), CacheWriteTokens: max(details.CacheWriteTokens, 0),
	}
}

// reportedError returns the error that the event reports, as JSON; nil if it does not.
func (c chunk) reportedError(data []byte) []byte {
	if providerhttp.Present(c.Error) || c.Object == "error" {
		return data
	}
	for _, one := range c.Choices {
		if providerhttp.Present(one.Error) {
			return []byte(`{"error":` + string(one.Error) + `}`)
		}
	}
	return nil
}

// finishReason returns the provider's finish reason in the words of core.
func finishReason(word string, called bool) core.FinishReason {
	switch word = strings.ToLower(word); word {
	case "function_call":
		return core.FinishToolCalls
	case "sensitive", "refusal": // Zhipu; Anthropic's word, behind a gateway
		return core.FinishContentFilter
	case "model_length", "max_tokens": // Mistral; Gemini's native word
		return core.FinishLength
	case "stop":
		if called { // Gemini, and Ollama at times
			return core.FinishToolCalls
		}
	}
	return core.FinishReason(word)
}

// calls joins the pieces of tool calls by their index, also for servers that leave it out
// or repeat it.
type calls []*slot

// slot is one tool call; its place among the calls is the index that we give it.
type slot struct {
	index     *int // the provider's
	id        string
	name      string
	arguments []byte
}

// addPiece returns the delta of the piece; nil if the piece is empty.
func (c *calls) addPiece(w callWire) *llm.ToolCallDelta {
	signature := w.ExtraContent.Google.ThoughtSignature
	if w.ID == "" && w.Function.Name == "" && w.Function.Arguments == "" && signature == "" {
		return nil
	}
	i := c.findSlot(w)
	if i < 0 {
		i = len(*c)
		*c = append(*c, &slot{index: w.Index})
	}
	s := (*c)[i]
	d := &llm.ToolCallDelta{Index: i, Arguments: string(w.Function.Arguments), Signature: signature}
	if s.id == "" && w.ID != "" && !slices.ContainsFunc(*c, func(s *slot) bool { return s.id == w.ID }) {
		s.id, d.ID = w.ID, w.ID
	}
	if s.name == "" {
		s.name, d.Name = w.Function.Name, w.Function.Name
	}
	s.arguments = append(s.arguments, d.Arguments...)
	return d
}

// findSlot returns the slot that the piece belongs to; -1 = a new one.
func (c calls) findSlot(w callWire) int {
	for i := len(c) - 1; i >= 0; i-- {
		s := c[i]
		if w.Index != nil && s.index != nil {
			if *w.Index != *s.index {
				continue
			}
			// Another call may have the same index: Gemini numbers all parallel calls 0, each whole in one piece.
			isNew := w.ID != "" && s.id != "" && w.ID != s.id ||
				w.ID == "" && strings.HasPrefix(string(w.Function.Arguments), "{") && json.Valid(s.arguments)
			if isNew && w.Function.Name != "" && s.name != "" {
				return -1
			}
			return i
		}
		if w.ID != "" && s.id == w.ID {
			return i
		}
	}
	if w.Index == nil && w.ID == "" && w.Function.Name == "" {
		return len(c) - 1 // continues the last
	}
	return -1
}
