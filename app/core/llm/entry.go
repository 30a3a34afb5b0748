package llm

import (
	"strings"

	"bobbin/app/core"
)

// The providers that a name can be resolved to without a configured entry.
const (
	providerOpenAI     = "openai"
	providerAnthropic  = "anthropic"
	providerGemini     = "gemini"
	providerOllama     = "ollama"
	providerMistral    = "mistral"
	providerOpenRouter = "openrouter"
	providerDemo       = "demo"
)

// Entry is a model that the registry can open: one of the configuration, or one
// that was inferred from a name.
type Entry struct {
	Name            string // what agents call it
	Provider        string // openai, anthropic, gemini, ollama, mistral, openrouter, demo, or any server of the OpenAI dialect
	Model           string // what the provider calls it; empty = Name
	BaseURL         string // empty = the provider's own
	APIKeyEnv       string // the environment variable that holds the key; empty = the provider's usual one, if it has any
	Window          int    // context window in tokens; 0 = by the model's name
	WindowFrom      WindowSource
	MaxOutput       int     // most tokens of an answer; 0 = by the model's name
	PriorFactor     float64 // see Info; 0 = by the model's name
	InputPrice      float64 // US dollars per million tokens; 0 = not known
	OutputPrice     float64
	CacheReadPrice  float64 // see Info
	CacheWritePrice float64
	Images          *bool // it sees images; nil = by the model's name
	Thinking        int   // budget for thinking in tokens, for anthropic; 0 = off
}

// Info returns the entry as a model describes itself.
func (e Entry) Info() Info {
	return Info{
		Name: e.Name, Provider: e.Provider, Window: e.Window, WindowFrom: e.WindowFrom, MaxOutput: e.MaxOutput,
		PriorFactor: e.PriorFactor, InputPrice: e.InputPrice, OutputPrice: e.OutputPrice,
		CacheReadPrice: e.CacheReadPrice, CacheWritePrice: e.CacheWritePrice,
		Images: e.Images != nil && *e.Images,
	}
}

// keyVariable returns the environment variable in which a provider's key is
// usually kept; empty = it needs none.
func keyVariable(provider string) string {
	switch provider {
	case providerOpenAI:
		return "OPENAI_API_KEY"
	case providerAnthropic:
		return "ANTHROPIC_API_KEY"
	case providerGemini:
		return "GEMINI_API_KEY"
	case providerMistral:
		return "MISTRAL_API_KEY"
	case providerOpenRouter:
		return "OPENROUTER_API_KEY"
	default:
		return ""
	}
}

// infer returns the entry that a name stands for by itself: "demo", a provider
// and a model ("ollama/llama3.2"), or a model whose provider its name tells.
func infer(name string) (Entry, bool) {
	if name == providerDemo {
		return Entry{Name: name, Provider: providerDemo}, true
	}
	if provider, model, ok := strings.Cut(name, "/"); ok && model != "" {
		switch provider {
		case providerOpenAI, providerAnthropic, providerGemini, providerOllama, providerMistral, providerOpenRouter:
			return Entry{Name: name, Provider: provider, Model: model}, true
		}
	}
	if provider := providerOf(name); provider != "" {
		return Entry{Name: name, Provider: provider, Model: name}, true
	}
	return Entry{}, false
}

// providerOf tells the provider from the beginning of a model's name.
func providerOf(model string) string {
	model = strings.TrimPrefix(strings.ToLower(model), "ft:")
	switch {
	case strings.HasPrefix(model, "gpt-"), strings.HasPrefix(model, "chatgpt-"), isOSeries(model):
		return providerOpenAI
	case strings.HasPrefix(model, "claude-"):
		return providerAnthropic
	case strings.HasPrefix(model, "gemini-"), strings.HasPrefix(model, "models/gemini-"):
		return providerGemini
	default:
		return ""
	}
}

// isOSeries reports whether the name is o1, o3-mini, o4-mini and so on.
func isOSeries(model string) bool {
	if len(model) < 2 || model[0] != 'o' || model[1] < '1' || model[1] > '9' {
		return false
	}
	return len(model) == 2 || model[2] == '-'
}

// withEnvironment fills in what the environment tells about the provider, and
// checks that the key is there. The key itself is not read.
func (e Entry) withEnvironment(env func(string) string) (Entry, error) {
	if e.Model == "" {
		e.Model = e.Name
	}
	if e.Provider == "" {
		e.Provider = providerOpenAI
	}
	asked := e.APIKeyEnv != "" // then the key must be there, wherever the model is
	if !asked {
		e.APIKeyEnv = keyVariable(e.Provider)
	}
	needed := e.APIKeyEnv != "" && (asked || e.BaseURL == "")
	if needed && env(e.APIKeyEnv) == "" {
		return e, core.Errorf(core.ErrInvalid, "model %s needs an API key: set %s", e.Name, e.APIKeyEnv)
	}
	if e.BaseURL == "" {
		switch e.Provider {
		case providerOpenAI:
			e.BaseURL = env("OPENAI_BASE_URL")
		case providerAnthropic:
			e.BaseURL = env("ANTHROPIC_BASE_URL")
		case providerOllama:
			e.BaseURL = ollamaURL(env) + "/v1"
		}
	}
	return e, nil
}
