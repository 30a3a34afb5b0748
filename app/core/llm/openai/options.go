package openai

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// The providers that this package knows by name. Any other server of the OpenAI
// dialect works too, with its BaseURL.
const (
	ProviderOpenAI     = "openai"
	ProviderGemini     = "gemini"
	ProviderOllama     = "ollama"
	ProviderMistral    = "mistral"
	ProviderOpenRouter = "openrouter"
)

// The time limits that a zero Timeouts means.
const (
	DefaultHeadersTimeout = providerhttp.DefaultHeadersTimeout
	DefaultIdleTimeout    = providerhttp.DefaultIdleTimeout
)

// Options say which model of which provider is called, and how.
type Options struct {
	Name     string // what agents call it; empty = Model
	Model    string // what the provider calls it
	Provider string // one of the constants above, or any word; empty = openai
	// BaseURL is where /chat/completions is, without it: https://api.openai.com/v1.
	// Empty = the provider's own. Every other provider needs one.
	BaseURL string
	APIKey  string // sent as a bearer token; empty = none is sent. Never shown in errors or when Options are printed.
	// Info describes the model; an empty Name or Provider is taken from above.
	Info llm.Info
	// Transport sends the requests; nil = a transport of its own that honors the
	// proxy variables of the environment.
	Transport http.RoundTripper
	Timeouts  Timeouts
	// LegacyMaxTokens sends the output limit as max_tokens to a server under the
	// provider "openai" that does not know max_completion_tokens. All other
	// providers get max_tokens anyway.
	LegacyMaxTokens bool
}

// Timeouts are our own limits; one that passes gives KindTimeout.
type Timeouts = providerhttp.Timeouts

// Format keeps the key out of whatever prints Options.
func (o Options) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{%s model %s at %s}", o.Provider, o.Model, providerhttp.Redacted(o.BaseURL))
}

// LogValue keeps the key out of logs.
func (o Options) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(o)) }

// dialect is how a provider differs from OpenAI.
type dialect struct {
	baseURL         string
	legacyMaxTokens bool // knows max_tokens only
	noStreamOptions bool // refuses stream_options, and reports the usage without
	noToolChoice    bool // ignores tool_choice
	shortCallIDs    bool // wants tool call ids of nine letters and digits
	signatures      bool // wants the signatures of tool calls back
	randomSeed      bool // calls the seed random_seed
	alternates      bool // may require user and assistant to alternate
}

func dialectOf(provider string) dialect {
	switch provider {
	case ProviderOpenAI:
		return dialect{baseURL: "https://api.openai.com/v1"}
	case ProviderGemini:
		return dialect{baseURL: "https://generativelanguage.googleapis.com/v1beta/openai", legacyMaxTokens: true, signatures: true}
	case ProviderOllama:
		return dialect{baseURL: "http://127.0.0.1:11434/v1", legacyMaxTokens: true, noToolChoice: true}
	case ProviderMistral:
		return dialect{baseURL: "https://api.mistral.ai/v1", legacyMaxTokens: true, noStreamOptions: true, shortCallIDs: true, randomSeed: true, alternates: true}
	case ProviderOpenRouter:
		return dialect{baseURL: "https://openrouter.ai/api/v1", legacyMaxTokens: true, alternates: true}
	default:
		return dialect{legacyMaxTokens: true, alternates: true}
	}
}

// BaseURL returns where a provider's API is; empty = it is not known.
func BaseURL(provider string) string { return dialectOf(provider).baseURL }

// EmbeddingProviders returns the providers that have embeddings at their BaseURL.
func EmbeddingProviders() []string {
	return []string{ProviderOpenAI, ProviderGemini, ProviderOllama, ProviderMistral, ProviderOpenRouter}
}

// withDefaults returns the options filled up and checked.
func (o Options) withDefaults() (Options, dialect, error) {
	if o.Provider == "" {
		o.Provider = ProviderOpenAI
	}
	d := dialectOf(o.Provider)
	if o.Model == "" {
		return o, d, core.Errorf(core.ErrInvalid, "a model of provider %s has no model name", o.Provider)
	}
	if o.Name == "" {
		o.Name = o.Model
	}
	o.BaseURL = strings.TrimRight(o.BaseURL, "/")
	if o.BaseURL == "" {
		o.BaseURL = d.baseURL
	}
	d.alternates = d.alternates || o.BaseURL != d.baseURL // templates of many open models do
	if err := providerhttp.CheckURL(o.Name, o.BaseURL); err != nil {
		return o, d, err
	}
	if o.Info.Name == "" {
		o.Info.Name = o.Name
	}
	if o.Info.Provider == "" {
		o.Info.Provider = o.Provider
	}
	o.Info.Lacks = LackedParameters(o.Provider, o.Model)
	o.Info.NoToolChoice = o.Info.NoToolChoice || d.noToolChoice
	o.Timeouts = o.Timeouts.WithDefaults()
	d.legacyMaxTokens = d.legacyMaxTokens || o.LegacyMaxTokens
	return o, d, nil
}
