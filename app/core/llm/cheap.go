package llm

// CheapModel returns the name of a provider's small model for work on the side,
// such as summaries (CONTEXT § 2); empty for a provider that has none that every
// user of it may call.
func CheapModel(provider string) string {
	switch provider {
	case providerOpenAI:
		return DefaultOpenAIModel
	case providerAnthropic:
		return DefaultAnthropicModel
	case providerGemini:
		return DefaultGeminiModel
	default:
		return ""
	}
}
