package anthropic

import "net/http"

// Cloud is a provider that serves Claude over the Messages API in its own place, with its own
// authorization. Zero = Anthropic itself. Thoughts belong to the provider that made them. System
// messages among the others and compactions are not known to work on any cloud, and are not used.
type Cloud struct {
	Provider string // what it is called
	// Path is where requests go, below the base URL; empty = v1/messages. A path names the model,
	// which is not in the body then.
	Path    string
	Version string // anthropic_version in the body; empty = only the header of Anthropic's own API
	// BindingControls: it knows the beta that leaves thoughts out instead of refusing a request.
	BindingControls bool
	// Authorize is that of the Peer.
	Authorize func(*http.Request) error
}
