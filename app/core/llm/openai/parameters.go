package openai

import (
	"cmp"
	"regexp"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

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
