package llm

// Preference is which model does the work beside a conversation, such as summaries,
// if the settings name none for it.
type Preference string

// The preferences. Where there is no such model the conversation's own does the work.
const (
	PreferOwn     Preference = ""        // the conversation's own model
	PreferDefault Preference = "default" // the default model, if it is of the same provider
	PreferSmall   Preference = "small"   // the provider's small model, if the operator named it
)

// CheapModel returns the name of a provider's small model for work on the side,
// such as summaries; empty for a provider without one that every user may call.
func CheapModel(provider string) string {
	return map[string]string{providerOpenAI: DefaultOpenAIModel, providerAnthropic: DefaultAnthropicModel, providerGemini: DefaultGeminiModel}[provider]
}
