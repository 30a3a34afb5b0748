package openai

import (
	"cmp"
	"context"
	"io"
	"iter"
	"regexp"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// Model is one model of one provider of the OpenAI dialect.
type Model struct {
	options Options
	dialect dialect
	peer    *providerhttp.Peer
}

// New returns the model that the options describe. Nothing is sent before the
// first Stream. Options that cannot work are refused with core.ErrInvalid.
func New(o Options) (*Model, error) {
	provider := cmp.Or(o.Provider, llm.ProviderOpenAI)
	d := dialectOf(provider)
	o, err := o.Complete(provider, d.baseURL)
	if err != nil {
		return nil, err
	}
	d.alternates = d.alternates || o.BaseURL != d.baseURL // templates of many open models do
	d.legacyMaxTokens = d.legacyMaxTokens || o.LegacyMaxTokens
	o.Info.Lacks = LackedParameters(o.Provider, o.Model)
	o.Info.NoToolChoice = o.Info.NoToolChoice || d.noToolChoice
	return &Model{options: o, dialect: d, peer: o.NewPeer()}, nil
}

// Info describes the model.
func (m *Model) Info() llm.Info { return m.options.Info }

// Stream sends the request and yields the answer as it arrives.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return providerhttp.Stream(func(emit func(llm.Delta) bool) *llm.Error {
		body, err := m.requestBody(req)
		if err != nil {
			return m.peer.Invalid(err)
		}
		return m.peer.Post(ctx, "/chat/completions", body, nil, func(body io.Reader, refusal func([]byte) *llm.Error) error {
			a := &answer{Answer: providerhttp.Answer{Emit: emit, Refusal: refusal}, opensThought: m.options.Info.OpensThought}
			return a.read(body)
		})
	})
}

// Options say which model of which provider is called, and how: Provider may be any word, and empty = openai. BaseURL is where /chat/completions is, without it.
type Options = providerhttp.Options

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
	case llm.ProviderOpenAI:
		return dialect{baseURL: "https://api.openai.com/v1"}
	case llm.ProviderGemini:
		return dialect{baseURL: "https://generativelanguage.googleapis.com/v1beta/openai", legacyMaxTokens: true, signatures: true}
	case llm.ProviderOllama:
		return dialect{baseURL: "http://127.0.0.1:11434/v1", legacyMaxTokens: true, noToolChoice: true}
	case llm.ProviderMistral:
		return dialect{baseURL: "https://api.mistral.ai/v1", legacyMaxTokens: true, noStreamOptions: true, shortCallIDs: true, randomSeed: true, alternates: true}
	case llm.ProviderOpenRouter:
		return dialect{baseURL: "https://openrouter.ai/api/v1", legacyMaxTokens: true, alternates: true}
	default:
		return dialect{legacyMaxTokens: true, alternates: true}
	}
}

// BaseURL returns where a provider's API is; empty = it is not known.
func BaseURL(provider string) string { return dialectOf(provider).baseURL }

// EmbeddingProviders returns the providers that have embeddings at their BaseURL.
func EmbeddingProviders() []string {
	return []string{llm.ProviderOpenAI, llm.ProviderGemini, llm.ProviderOllama, llm.ProviderMistral, llm.ProviderOpenRouter}
}

// toResponseFormat returns the format as OpenAI writes it.
func toResponseFormat(f *core.ResponseFormat) *responseFormat {
	if f.Type != core.FormatJSONSchema {
		return &responseFormat{Type: f.Type}
	}
	return &responseFormat{Type: f.Type, JSONSchema: &jsonSchema{cmp.Or(f.Name, core.DefaultSchemaName), f.Schema, f.Strict}}
}

// The models of OpenAI by what they take. Its documentation: reasoning models refuse
// sampling parameters, the older ones know no schema, and only reasoning models have an
// effort. Reasoning models are o1 and later and GPT-5 and later, numbers to come included.
// Models of others that are called alike, such as gpt-oss, are not among them.
var (
	reasoningModel  = regexp.MustCompile(`^(?:o\d|gpt-(?:[5-9]|[12]\d)(?:\D|$))`) // gpt-35 is Azure's name of GPT-3.5
	takesStop       = regexp.MustCompile(`^o1(?:\D|$)`)                           // of the reasoning models
	withoutEffort   = regexp.MustCompile(`^(?:gpt-3|gpt-4|chatgpt-|o1-mini|o1-preview)`)
	withoutSchema   = regexp.MustCompile(`^(?:gpt-3|gpt-4-|gpt-4$|o1-mini|o1-preview)`)
	withoutParallel = regexp.MustCompile(`^o\d`)
	oldGemini       = regexp.MustCompile(`^gemini-(?:1|2\.0)`)
)

// ownName returns the model's name without what a proxy or a fine-tuning puts before it.
func ownName(model string) string {
	model = strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	return strings.TrimPrefix(model, "ft:")
}

// HasFixedSampling reports whether the model is one of OpenAI's that refuse any temperature.
func HasFixedSampling(model string) bool {
	model = ownName(model)
	return reasoningModel.MatchString(model) && !strings.Contains(model, "-chat")
}

// LackedParameters returns the parameters that the provider or the model does not take, as far as its
// name shows.
func LackedParameters(provider, model string) []llm.Parameter {
	name := ownName(model)
	var out []llm.Parameter
	if HasFixedSampling(model) {
		out = append(out, llm.Temperature, llm.TopP)
	}
	if HasFixedSampling(model) && !takesStop.MatchString(name) {
		out = append(out, llm.Stop)
	}
	chat := reasoningModel.MatchString(name) && !HasFixedSampling(model) // gpt-5-chat-latest does not reason
	if chat || withoutEffort.MatchString(name) || oldGemini.MatchString(name) || provider == llm.ProviderMistral {
		out = append(out, llm.ReasoningEffort)
	}
	if withoutSchema.MatchString(name) {
		out = append(out, llm.JSONSchema)
	}
	if provider == llm.ProviderOllama { // its API has neither of them
		out = append(out, llm.StrictTools, llm.ParallelTools)
	}
	if withoutParallel.MatchString(name) {
		out = append(out, llm.ParallelTools)
	}
	return out
}
