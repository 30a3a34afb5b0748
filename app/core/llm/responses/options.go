package responses

import (
	"bobbin/app/core/llm/providerhttp"
)

// Options say which model is called, and how. BaseURL is where /responses is, without it.
type Options = providerhttp.Options
