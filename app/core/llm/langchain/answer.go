package langchain

import (
	"encoding/json"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// lastDeltas returns what follows the streamed text: the rest of the text, tool calls,
// token counts and the finish reason. Some providers return one choice for each block of
// the answer.
func (c *call) lastDeltas(response *llms.ContentResponse) []llm.Delta {
	last := llm.Delta{}
	var text, reasoning, stop string
	var calls []llm.Delta
	for _, choice := range response.Choices {
		text += choice.Content
		reasoning += choice.ReasoningContent
		if choice.StopReason != "" {
			stop = choice.StopReason
		}
		if last.Usage == nil {
			last.Usage = usageOf(choice.GenerationInfo)
		}
		if model, ok := choice.GenerationInfo["model"].(string); ok {
			last.Model = model
		}
		for _, t := range choice.ToolCalls {
			calls = append(calls, llm.Delta{ToolCall: toolCall(len(calls), t)})
		}
	}
	last.Finish = finishReason(stop, len(calls) > 0)
	if stop == "" && last.Usage != nil && c.req.MaxOutputTokens > 0 && last.Usage.OutputTokens >= c.req.MaxOutputTokens {
		last.Finish = core.FinishLength
	}
	rest := strings.TrimPrefix(text, c.streamed.String())
	if c.streamed.Len() > 0 && rest == text {
		rest = "" // the stream was the answer
	}
	var out []llm.Delta
	if rest != "" || reasoning != "" {
		out = append(out, llm.Delta{Text: rest, Reasoning: reasoning})
	}
	return append(append(out, calls...), last)
}

func toolCall(index int, t llms.ToolCall) *llm.ToolCallDelta {
	d := &llm.ToolCallDelta{Index: index, ID: t.ID}
	if d.ID == "" { // the result must name it
		d.ID = llm.NewCallID()
	}
	if t.FunctionCall != nil {
		d.Name, d.Arguments = t.FunctionCall.Name, t.FunctionCall.Arguments
	}
	return d
}

// finishReason returns a provider's finish reason in the words of core.
func finishReason(stop string, calledTools bool) core.FinishReason {
	word := strings.ToLower(strings.TrimPrefix(stop, "FinishReason"))
	switch word {
	case "length", "max_tokens", "maxtokens", "model_length":
		return core.FinishLength
	case "safety", "content_filter", "content_filtered", "error_toxic", "refusal":
		return core.FinishContentFilter
	case "", "stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "tool_use", "tool_calls", "function_call":
		if calledTools {
			return core.FinishToolCalls
		}
		return core.FinishStop
	}
	return core.FinishReason(word)
}

// usageOf returns the token counts of a GenerationInfo; nil = it has none. Providers write
// PromptTokens, InputTokens or input_tokens, or put an object of their own under "usage".
func usageOf(info map[string]any) *core.Usage {
	counts := map[string]int{}
	addCounts(counts, info)
	raw, err := json.Marshal(info["usage"])
	var nested map[string]any
	if err == nil && json.Unmarshal(raw, &nested) == nil {
		addCounts(counts, nested)
	}
	u := core.Usage{
		InputTokens:     max(counts["prompttokens"], counts["inputtokens"]),
		OutputTokens:    max(counts["completiontokens"], counts["outputtokens"]),
		ReasoningTokens: max(counts["reasoningtokens"], counts["thinkingtokens"], counts["completionreasoningtokens"]),
		CacheReadTokens: max(counts["promptcachedtokens"], counts["cachedtokens"]),
	}
	// Anthropic does not count the cached parts as input.
	read, write := counts["cachereadinputtokens"], counts["cachecreationinputtokens"]
	if read+write > 0 {
		u.InputTokens += read + write
		u.CacheReadTokens, u.CacheWriteTokens = read, write
	}
	if u.InputTokens <= 0 && u.OutputTokens <= 0 {
		return nil
	}
	return &u
}

// addCounts adds the positive numbers, by their name in lower case without underscores.
func addCounts(counts map[string]int, info map[string]any) {
	for key, value := range info {
		n := 0
		switch v := value.(type) {
		case int:
			n = v
		case int32:
			n = int(v)
		case int64:
			n = int(v)
		case float64:
			n = int(v)
		}
		if n > 0 {
			counts[strings.ToLower(strings.ReplaceAll(key, "_", ""))] = n
		}
	}
}
