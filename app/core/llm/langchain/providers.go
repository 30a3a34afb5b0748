package langchain

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/huggingface"
	"github.com/tmc/langchaingo/llms/mistral"
	"github.com/tmc/langchaingo/llms/ollama"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Prefix begins the name of each provider of this package.
const Prefix = "langchain/"

// requestTime bounds a request of a client that ignores the context.
const requestTime = 10 * time.Minute

// traits is how a provider of langchaingo differs from others.
type traits struct {
	name        string
	baseURL     string
	lacks       []llm.Parameter
	temperature float64 // sent if the request has none, because langchaingo would send 0
	seeded      bool    // langchaingo sends the same seed with every request that has none
	onePrompt   bool    // takes one text instead of messages
	images      bool
	reportsEnd  bool // the last piece of an answer has a finish reason or token counts
	open        func(o Options, client *http.Client) (llms.Model, error)
}

// providerTable returns the providers that settings can name.
func providerTable() []traits {
	return []traits{
		{
			name: Prefix + "huggingface", baseURL: "https://router.huggingface.co/hf-inference", open: openHuggingFace,
			temperature: 1, onePrompt: true,
			lacks: []llm.Parameter{llm.Tools, llm.Stop, llm.ReasoningEffort, llm.JSONObject, llm.JSONSchema},
		},
		{
			// Its client drops the ids of tool results, which Mistral requires.
			name: Prefix + "mistral", baseURL: "https://api.mistral.ai", open: openMistral,
			temperature: 1, seeded: true, reportsEnd: true,
			lacks: []llm.Parameter{llm.Tools, llm.TopP, llm.Stop, llm.ReasoningEffort, llm.JSONObject, llm.JSONSchema},
		},
		{
			name: Prefix + "ollama", baseURL: "http://127.0.0.1:11434", open: openOllama,
			temperature: 0.8, images: true, reportsEnd: true,
			lacks: []llm.Parameter{llm.Tools, llm.ReasoningEffort, llm.JSONSchema},
		},
	}
}

// Providers returns the names of the providers that New opens.
func Providers() []string {
	var names []string
	for _, t := range providerTable() {
		names = append(names, t.name)
	}
	return names
}

// findProvider returns the provider's traits.
func findProvider(name string) (traits, error) {
	all := providerTable()
	i := slices.IndexFunc(all, func(t traits) bool { return t.name == name })
	if i < 0 {
		return traits{}, core.Errorf(core.ErrInvalid, "the provider %q does not exist; langchaingo's are %s",
			core.Clip(name, 100), strings.Join(Providers(), ", "))
	}
	return all[i], nil
}

func openHuggingFace(o Options, client *http.Client) (llms.Model, error) {
	return huggingface.New(huggingface.WithModel(o.Model), huggingface.WithToken(keyOrDash(o.APIKey)),
		huggingface.WithURL(o.BaseURL), huggingface.WithHTTPClient(client))
}

// openMistral refuses addresses with a path, which the client would replace by its own.
func openMistral(o Options, _ *http.Client) (llms.Model, error) {
	address, err := url.Parse(o.BaseURL)
	if err != nil || strings.TrimSuffix(address.Path, "/v1") != "" {
		return nil, core.Errorf(core.ErrInvalid, "model %s: the base_url of %s must have no path", o.Name, o.Provider)
	}
	// The retries are ours; 0 would mean five.
	return mistral.New(mistral.WithModel(o.Model), mistral.WithAPIKey(keyOrDash(o.APIKey)),
		mistral.WithEndpoint(o.BaseURL), mistral.WithMaxRetries(1), mistral.WithTimeout(requestTime))
}

// openOllama asks for the context length for which prompts are planned. Ollama cuts longer
// prompts silently.
func openOllama(o Options, client *http.Client) (llms.Model, error) {
	options := []ollama.Option{
		ollama.WithModel(o.Model), ollama.WithServerURL(strings.TrimSuffix(o.BaseURL, "/v1")), ollama.WithHTTPClient(client),
	}
	if o.Info.Window > 0 {
		options = append(options, ollama.WithRunnerNumCtx(o.Info.Window))
	}
	return ollama.New(options...)
}

// keyOrDash keeps langchaingo from searching the environment and the home directory for a
// key, which it would send to any address.
func keyOrDash(key string) string {
	if key == "" {
		return "-"
	}
	return key
}
