package llm

// CheapModel returns the name of a provider's small model for work on the side,
// such as summaries (CONTEXT § 2); empty for a provider that has none that every
// user of it may call.
func CheapModel(provider string) string {
	switch provider {
	case "openai":
		return "gpt-4o-mini"
	case "gemini":
		return "gemini-2.0-flash"
	default:
		return ""
	}
}
