package anthropic

import (
	"cmp"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// Provider is what this provider is called.
const Provider = "anthropic"

// DefaultBaseURL is where Anthropic's own API is.
const DefaultBaseURL = "https://api.anthropic.com"

// DefaultMaxOutput is the output limit of a request that sets none, to a model of
// which none is known: the API wants one, and every model takes this.
const DefaultMaxOutput = 4_096

// Options say which model is called, and how. BaseURL is where /v1/messages is, without it; a /v1 at its
// end is ignored. Thinking: see the package.
type Options = providerhttp.Options

// complete returns the options filled up and checked.
func complete(o Options, cloud Cloud) (Options, error) {
	o.BaseURL = strings.TrimSuffix(strings.TrimRight(o.BaseURL, "/"), "/v1")
	o, err := o.Complete(cmp.Or(cloud.Provider, Provider), DefaultBaseURL)
	if err != nil {
		return o, err
	}
	if o.Thinking != 0 && o.Thinking < minThinking {
		return o, core.Errorf(core.ErrInvalid, "model %s: a thinking budget of %d tokens is too small; use %d or more, or 0 for none", o.Name, o.Thinking, minThinking)
	}
	isOwn := cloud.Provider == ""
	// Thinking excludes sampling parameters; schemas came with Claude 4.5.
	claude := generationOf(o.Model)
	out := []llm.Parameter{llm.Seed, llm.ReasoningEffort, llm.JSONObject, llm.BlankStop}
	if claude.fixedSampling() || o.Thinking > 0 {
		out = append(out, llm.Temperature, llm.TopP)
	} else {
		out = append(out, llm.HighTemperature, llm.TopPBeside)
	}
	if !claude.IsSince(4, 5) { // as schemas of answers, so those of tools
		out = append(out, llm.JSONSchema, llm.StrictTools)
	}
	o.Info.Lacks = out
	o.Info.ThoughtOrigin = o.Provider + "/" + o.Model
	o.Info.SystemMessages = llm.PrefixContractOf(o.Model).Binds() && isOwn // Opus 4.8 takes them, too, and binds no thoughts
	if o.Info.SystemMessages {
		o.Info.ToolChanges = llm.ToolsChangeable
	}
	o.Info.Compacts = generationOf(o.Model).compacts() && isOwn
	o.Info.Account = providerhttp.Account(o.BaseURL, o.APIKey)
	return o, nil
}
