package responses

import (
	"slices"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
	"bobbin/app/core/llm/providerhttp"
)

// Options say which model is called, and how. BaseURL is where /responses is, without it.
type Options = providerhttp.Options

// complete returns the options filled up and checked.
func complete(o Options) (Options, error) {
	o, err := o.Complete(openai.ProviderOpenAI, openai.BaseURL(openai.ProviderOpenAI))
	if err != nil {
		return o, err
	}
	o.Info.Lacks = lackedParameters(o.Model)
	o.Info.ReasoningUncounted = true
	o.Info.ThoughtOrigin = o.Provider + "/" + o.Model
	o.Info.SystemMessages = llm.PrefixContractOf(o.Model).Binds()
	if o.Info.SystemMessages {
		o.Info.ToolChanges = llm.ToolsAdded
	}
	o.Info.Account = providerhttp.Account(o.BaseURL, o.APIKey)
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
