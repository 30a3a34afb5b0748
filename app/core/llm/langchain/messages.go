package langchain

import (
	"encoding/json"
	"math/rand/v2"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// toMessages returns the prompt in langchaingo's types. User and assistant alternate,
// which several providers require.
func (m *Model) toMessages(req llm.Request) []llms.MessageContent {
	system, turns := req.SystemText(), llm.Alternating(llm.ToolTurnsAsText(req.Messages))
	if m.traits.onePrompt {
		return []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, onePrompt(system, turns))}
	}
	var out []llms.MessageContent
	if system != "" {
		out = append(out, llms.TextParts(llms.ChatMessageTypeSystem, system))
	}
	for _, turn := range turns {
		message := llms.MessageContent{Role: llms.ChatMessageTypeHuman}
		if turn.Role == core.RoleAssistant {
			message.Role = llms.ChatMessageTypeAI
		}
		if text := llm.PlainText(turn); text != llm.EmptyText || len(turn.Media) == 0 {
			message.Parts = append(message.Parts, llms.TextContent{Text: text})
		}
		for _, media := range turn.Media {
			message.Parts = append(message.Parts, llms.BinaryPart(media.MediaType, media.Data))
		}
		out = append(out, message)
	}
	return out
}

// onePrompt returns the conversation as a text that ends where the model continues.
func onePrompt(system string, turns []llm.Message) string {
	if system == "" && len(turns) == 1 {
		return llm.PlainText(turns[0])
	}
	var text strings.Builder
	if system != "" {
		text.WriteString(system + "\n\n")
	}
	for _, turn := range turns {
		name := "User: "
		if turn.Role == core.RoleAssistant {
			name = "Assistant: "
		}
		text.WriteString(name + llm.PlainText(turn) + "\n\n")
	}
	return text.String() + "Assistant:"
}

// callOptions returns the parameters of the request. langchaingo would send a temperature of 0 and,
// to some providers, always the same seed.
func (m *Model) callOptions(req llm.Request) []llms.CallOption {
	var options []llms.CallOption
	if temperature := m.traits.temperature; req.Temperature != nil {
		options = append(options, llms.WithTemperature(*req.Temperature))
	} else if temperature != 0 {
		options = append(options, llms.WithTemperature(temperature))
	}
	if req.Seed != nil {
		options = append(options, llms.WithSeed(*req.Seed))
	} else if m.traits.seeded {
		options = append(options, llms.WithSeed(rand.IntN(1<<31)))
	}
	if req.MaxOutputTokens > 0 {
		options = append(options, llms.WithMaxTokens(req.MaxOutputTokens))
	}
	if req.TopP != nil {
		options = append(options, llms.WithTopP(*req.TopP))
	}
	if len(req.Stop) > 0 {
		options = append(options, llms.WithStopWords(req.Stop))
	}
	if req.ResponseFormat != nil && req.ResponseFormat.Type == core.FormatJSONObject {
		options = append(options, llms.WithJSONMode())
	}
	return options
}

// usageOf returns the token counts of a GenerationInfo; nil = it has none.
func usageOf(info map[string]any) *core.Usage {
	var counts struct {
		PromptTokens, CompletionTokens int      // of Ollama
		Usage                          struct { // of Mistral
			PromptTokens     int `json:"prompt_tokens"`
			CompletionTokens int `json:"completion_tokens"`
		}
	}
	raw, err := json.Marshal(info)
	if err != nil || json.Unmarshal(raw, &counts) != nil {
		return nil
	}
	u := core.Usage{
		InputTokens:  max(counts.PromptTokens, counts.Usage.PromptTokens, 0),
		OutputTokens: max(counts.CompletionTokens, counts.Usage.CompletionTokens, 0),
	}
	if u == (core.Usage{}) {
		return nil
	}
	return &u
}
