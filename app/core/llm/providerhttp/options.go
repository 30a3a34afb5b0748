package providerhttp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Options say which model of which provider is called, and how.
type Options struct {
	Name     string // what agents call it; empty = Model
	Model    string // what the provider calls it
	Provider string // empty = the adapter's own
	BaseURL  string // where the API is, without the path of a call; empty = the provider's own, if it has one
	APIKey   string // empty = none is sent; never in errors or logs
	// Info describes the model; an empty Name or Provider is taken from above.
	Info llm.Info
	// Transport sends the requests; nil = one of its own that honors the proxy variables of the
	// environment.
	Transport http.RoundTripper
	Timeouts  Timeouts
	// Thinking is the budget for thinking in tokens, for package anthropic; 0 = off.
	Thinking int
	// LegacyMaxTokens sends the output limit as max_tokens to a server under the provider "openai"
	// that does not know max_completion_tokens, for package openai. Its other providers get
	// max_tokens anyway.
	LegacyMaxTokens bool
}

// Format keeps the key out of whatever prints Options.
func (o Options) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{%s model %s at %s}", o.Provider, o.Model, llm.Redacted(o.BaseURL))
}

// LogValue keeps the key out of logs.
func (o Options) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(o)) }

// Complete returns the options filled up, with the provider's own address where none is set. Options
// that cannot work are core.ErrInvalid.
func (o Options) Complete(provider, baseURL string) (Options, error) {
	o.Provider = provider
	if o.Model == "" {
		return o, core.Errorf(core.ErrInvalid, "a model of provider %s has no model name", o.Provider)
	}
	o.Name, o.BaseURL = cmp.Or(o.Name, o.Model), cmp.Or(strings.TrimRight(o.BaseURL, "/"), baseURL)
	if o.BaseURL == "" {
		return o, core.Errorf(core.ErrInvalid, "model %s needs a base_url, such as http://127.0.0.1:8000/v1", o.Name)
	}
	if u, err := url.Parse(o.BaseURL); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return o, core.Errorf(core.ErrInvalid, "model %s: the base_url is not an http or https address", o.Name)
	}
	o.Info.Name, o.Info.Provider = cmp.Or(o.Info.Name, o.Name), cmp.Or(o.Info.Provider, o.Provider)
	o.Timeouts = Timeouts{cmp.Or(o.Timeouts.Headers, DefaultHeadersTimeout), cmp.Or(o.Timeouts.Idle, DefaultIdleTimeout)}
	return o, nil
}

// NewPeer returns the provider of complete options.
func (o Options) NewPeer() *Peer {
	return &Peer{Provider: o.Provider, BaseURL: o.BaseURL, Key: o.APIKey, Timeouts: o.Timeouts, Client: NewClient(o.Transport)}
}

// ListModels asks for the names of the provider's models, as OpenAI lists them; none = the answer is no such list.
// Errors are *llm.Error. Only Provider, BaseURL and APIKey are used; ctx bounds the time.
func (o Options) ListModels(ctx context.Context) (names []string, err error) {
	o.Timeouts = Timeouts{Headers: -1, Idle: -1}
	peer := o.NewPeer()
	failure := peer.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.BaseURL+"/models", http.NoBody)
		if err == nil && o.APIKey != "" {
			request.Header.Set("Authorization", "Bearer "+o.APIKey)
		}
		return request, err
	}, func(response *http.Response, body io.Reader) error {
		text, err := peer.readWhole(response.Header, body)
		var list struct{ Data []struct{ ID string } }
		_ = json.Unmarshal(text, &list) // else it has none
		for _, model := range list.Data {
			if model.ID != "" {
				names = append(names, model.ID)
			}
		}
		return err
	})
	if failure != nil {
		return nil, failure
	}
	return names, nil
}
