package anthropic

import "bobbin/app/core/llm/providerhttp"

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
