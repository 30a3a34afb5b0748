package config

// Model is an entry of models: it extends the built-in table or overrides it.
type Model struct {
	Name            string  // what agents call it
	Provider        string  // one of Providers
	Model           string  // what the provider calls it; empty = Name
	BaseURL         string  // empty = the provider's own
	APIKeyEnv       string  // name of the environment variable that holds the key; empty = the provider's usual one
	ContextWindow   int     // tokens; 0 = by the model's name
	MaxOutputTokens int     // 0 = by the model's name
	Encoding        string  // one of Encodings; empty = by the model's name
	InputPrice      float64 // US dollars per million tokens; 0 = not known
	OutputPrice     float64
	CacheReadPrice  float64 // of the part of a prompt that the provider had cached; 0 = InputPrice
	CacheWritePrice float64 // of the part that it put into its cache; 0 = InputPrice
	ThinkingBudget  int     // tokens, for provider anthropic; 0 = no thinking
	Images          *bool   // whether it sees images; nil = by the model's name
}

// PriorFactor returns how many of the model's tokens one cl100k_base token is
// expected to be before anything was measured; 0 = by the model's name.
func (m Model) PriorFactor() float64 {
	if m.Encoding == "" {
		return 0
	}
	return 1 // o200k_base has no more tokens than cl100k_base but in rare texts
}

// Providers returns the words that a model's provider takes. Any other server of
// OpenAI's dialect is "openai" with a base_url.
func Providers() []string {
	return []string{"openai", "anthropic", "gemini", "ollama", "mistral", "openrouter", "demo"}
}

// Encodings returns the words that a model's encoding takes.
func Encodings() []string { return []string{"cl100k_base", "o200k_base"} }

// ModelKeys returns the keys of an entry of models, in the order in which they are
// documented.
func ModelKeys() []Key {
	var keys []Key
	for _, f := range modelFields() {
		keys = append(keys, Key{Name: f.name, Meaning: f.meaning})
	}
	return keys
}

// modelField is a key of an entry of models.
type modelField struct {
	name    string
	meaning string
	field   func(*Model) any
}

func modelFields() []modelField {
	return []modelField{
		{"name", "what agents call it", func(m *Model) any { return &m.Name }},
		{"provider", "`openai` (and every server of its dialect, with `base_url`), `anthropic`, `gemini`, `ollama`, `mistral`, `openrouter`, `demo`", func(m *Model) any { return &m.Provider }},
		{"model", "what the provider calls it; empty: `name`", func(m *Model) any { return &m.Model }},
		{"base_url", "where the provider is; empty: its own address", func(m *Model) any { return &m.BaseURL }},
		{"api_key_env", "the **name** of the environment variable that holds the key; empty: the provider's usual one", func(m *Model) any { return &m.APIKeyEnv }},
		{"context_window", "tokens, prompt and answer together; holds against what the provider says when it refuses a prompt; empty: by the model's name", func(m *Model) any { return &m.ContextWindow }},
		{"max_output_tokens", "most tokens of an answer; empty: by the model's name", func(m *Model) any { return &m.MaxOutputTokens }},
		{"encoding", "`cl100k_base` or `o200k_base`: counts need no correction until they are measured; empty: by the model's name", func(m *Model) any { return &m.Encoding }},
		{"input_price", "US dollars per million tokens", func(m *Model) any { return &m.InputPrice }},
		{"output_price", "US dollars per million tokens", func(m *Model) any { return &m.OutputPrice }},
		{"cache_read_price", "US dollars per million tokens that the provider had cached; empty: `input_price`", func(m *Model) any { return &m.CacheReadPrice }},
		{"cache_write_price", "US dollars per million tokens that it puts into its cache; empty: `input_price`", func(m *Model) any { return &m.CacheWritePrice }},
		{"thinking_budget", "`anthropic` only: tokens that the model may think before it answers, 1024 or more, part of the answer's; from Claude 4.6 on it decides itself how many, and any number turns thinking on; empty: no thinking", func(m *Model) any { return &m.ThinkingBudget }},
		{"images", "`true` or `false`: whether it sees images; to one that does not they are described; empty: by the model's name", func(m *Model) any { return &m.Images }},
	}
}
