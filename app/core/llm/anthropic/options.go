package anthropic

import (
	"fmt"
	"log/slog"
	"net/http"
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

// Options say which model is called, and how.
type Options struct {
	Name    string // what agents call it; empty = Model
	Model   string // what Anthropic calls it
	BaseURL string // where /v1/messages is, without it; empty = Anthropic's own. A /v1 at its end is ignored
	APIKey  string // empty = none is sent. Never shown in errors or when Options are printed.
	// Info describes the model; an empty Name or Provider is taken from above.
	Info llm.Info
	// Transport sends the requests; nil = a transport of its own that honors the
	// proxy variables of the environment.
	Transport http.RoundTripper
	Timeouts  providerhttp.Timeouts
	Thinking  int // budget for thinking in tokens, see the package; 0 = off
	Cloud     Cloud
}

// Format keeps the key out of whatever prints Options.
func (o Options) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{%s model %s at %s}", o.provider(), o.Model, providerhttp.Redacted(o.BaseURL))
}

// LogValue keeps the key out of logs.
func (o Options) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(o)) }

// withDefaults returns the options filled up and checked.
func (o Options) withDefaults() (Options, error) {
	if o.Model == "" {
		return o, core.Errorf(core.ErrInvalid, "a model of provider %s has no model name", o.provider())
	}
	if o.Name == "" {
		o.Name = o.Model
	}
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	o.BaseURL = strings.TrimSuffix(strings.TrimRight(o.BaseURL, "/"), "/v1")
	if err := providerhttp.CheckURL(o.Name, o.BaseURL); err != nil {
		return o, err
	}
	if o.Thinking != 0 && o.Thinking < minThinking {
		return o, core.Errorf(core.ErrInvalid, "model %s: a thinking budget of %d tokens is too small; use %d or more, or 0 for none", o.Name, o.Thinking, minThinking)
	}
	if o.Info.Name == "" {
		o.Info.Name = o.Name
	}
	if o.Info.Provider == "" {
		o.Info.Provider = o.provider()
	}
	o.Info.Lacks = o.lackedParameters()
	o.Info.ThoughtOrigin = o.provider() + "/" + o.Model
	o.Info.SystemMessages = llm.PrefixContractOf(o.Model).Binds() && !o.isCloud() // Opus 4.8 takes them, too, and binds no thoughts
	if o.Info.SystemMessages {
		o.Info.ToolChanges = llm.ToolsChangeable
	}
	o.Info.Compacts = generationOf(o.Model).compacts() && !o.isCloud()
	o.Info.CompactionKeepsThoughts = o.Info.Compacts
	o.Info.Account = providerhttp.Account(o.BaseURL, o.APIKey)
	o.Timeouts = o.Timeouts.WithDefaults()
	return o, nil
}
