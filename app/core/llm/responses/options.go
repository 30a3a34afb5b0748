package responses

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
	"bobbin/app/core/llm/providerhttp"
)

// DefaultBaseURL is where OpenAI's own API is.
const DefaultBaseURL = "https://api.openai.com/v1"

// Options say which model is called, and how.
type Options struct {
	Name    string // what agents call it; empty = Model
	Model   string // what the provider calls it
	BaseURL string // where /responses is, without it; empty = OpenAI's own
	APIKey  string // empty = none is sent. Never shown in errors or when Options are printed.
	// Info describes the model; an empty Name or Provider is filled in.
	Info llm.Info
	// Transport sends the requests; nil = a transport of its own that honors the
	// proxy variables of the environment.
	Transport http.RoundTripper
	Timeouts  providerhttp.Timeouts
}

// Format keeps the key out of whatever prints Options.
func (o Options) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{%s model %s at %s}", openai.ProviderOpenAI, o.Model, providerhttp.Redacted(o.BaseURL))
}

// LogValue keeps the key out of logs.
func (o Options) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(o)) }

// withDefaults returns the options filled up and checked.
func (o Options) withDefaults() (Options, error) {
	if o.Model == "" {
		return o, core.Errorf(core.ErrInvalid, "a model of provider %s has no model name", openai.ProviderOpenAI)
	}
	if o.Name == "" {
		o.Name = o.Model
	}
	o.BaseURL = strings.TrimRight(o.BaseURL, "/")
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	if err := providerhttp.CheckURL(o.Name, o.BaseURL); err != nil {
		return o, err
	}
	if o.Info.Name == "" {
		o.Info.Name = o.Name
	}
	if o.Info.Provider == "" {
		o.Info.Provider = openai.ProviderOpenAI
	}
	o.Info.Lacks = lackedParameters(o.Model)
	o.Info.ReasoningUncounted = true
	o.Info.ThoughtOrigin = openai.ProviderOpenAI + "/" + o.Model
	o.Info.SystemMessages = llm.PrefixContractOf(o.Model).Binds()
	if o.Info.SystemMessages {
		o.Info.ToolChanges = llm.ToolsAdded
	}
	o.Info.Compacts = true
	o.Info.Account = providerhttp.Account(o.BaseURL, o.APIKey)
	o.Timeouts = o.Timeouts.WithDefaults()
	return o, nil
}

// lackedParameters returns the parameters that the API or the model does not take.
func lackedParameters(model string) []llm.Parameter {
	out := openai.LackedParameters(openai.ProviderOpenAI, model)
	for _, p := range []llm.Parameter{llm.Stop, llm.Seed} {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}
