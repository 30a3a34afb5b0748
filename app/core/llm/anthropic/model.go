package anthropic

import (
	"context"
	"iter"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// Model is one model of Anthropic.
type Model struct {
	options Options
	claude  generation
	peer    *providerhttp.Peer
	client  sdk.Client
}

// New returns the model that the options describe. Nothing is sent before the
// first Stream. Options that cannot work are refused with core.ErrInvalid.
func New(options Options) (*Model, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Model{options: options, claude: generationOf(options.Model), peer: &providerhttp.Peer{
		Provider: options.provider(), BaseURL: options.BaseURL, Key: options.APIKey, Timeouts: options.Timeouts,
		Client: providerhttp.NewClient(options.Transport),
	}}
	m.peer.Client.Transport = options.Cloud.transport(m.peer.Client.Transport)
	settings := []option.RequestOption{
		// Else keys, tokens, headers and files of this machine would be sent anywhere.
		option.WithoutEnvironmentDefaults(),
		option.WithBaseURL(options.BaseURL),
		option.WithMaxRetries(0), // llm.WithRetry does it
	}
	if options.APIKey != "" && !options.isCloud() {
		settings = append(settings, option.WithAPIKey(options.APIKey))
	}
	m.client = sdk.NewClient(settings...)
	return m, nil
}

// Info describes the model.
func (m *Model) Info() llm.Info { return m.options.Info }

// Stream sends the request and yields the answer as it arrives. Everything
// happens on the caller's goroutine; when Stream's loop has ended, the request
// has too. Errors are *llm.Error: KindCanceled when ctx ended it (also by its
// deadline), KindTimeout when one of our own limits passed.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	if req.Compact {
		req = compactionRequest(req)
	}
	return func(yield func(llm.Delta, error) bool) {
		x := m.newConversation(req, yield)
		err := m.run(ctx, x, req)
		if m.refusedThoughts(req, err) {
			x = m.newConversation(req, yield)
			if yield(llm.Delta{Dropped: m.refusedAll(req)}, nil) {
				err = m.run(ctx, x, req.WithoutThoughts())
			} else {
				x.left = true
			}
		}
		if err != nil && !x.left {
			yield(llm.Delta{}, err)
		}
	}
}

// newConversation returns a call with the request.
func (m *Model) newConversation(req llm.Request, yield func(llm.Delta, error) bool) *conversation {
	return &conversation{model: m, yield: yield, compaction: providerhttp.NewCompaction(m.options.provider(), req)}
}

// run lets the SDK build the request; the conversation, as its HTTP client, does
// everything from there on and keeps the outcome.
func (m *Model) run(ctx context.Context, x *conversation, req llm.Request) error {
	if ctx.Err() != nil {
		return llm.CanceledError(ctx, m.options.provider())
	}
	params, raw, err := m.toParams(req)
	if err != nil {
		return m.peer.Invalid(err)
	}
	x.raw = raw
	var response *http.Response
	// Post, not Messages.NewStreaming: that writes warnings to the terminal.
	settings := []option.RequestOption{option.WithJSONSet("stream", true), option.WithHTTPClient(x)}
	if req.ChecksPrefix && (!m.options.isCloud() || m.options.Cloud.BindingControls) {
		settings = append(settings, bindingControls(params)...)
	}
	settings = append(settings, compactionSettings(req)...)
	settings = append(settings, toolChangeSettings(req)...)
	settings = append(settings, m.options.Cloud.settings()...)
	err = m.client.Post(ctx, m.options.Cloud.path(), params, &response, settings...)
	if !x.sent {
		return m.peer.Invalid(err)
	}
	if refused := req.RefusedToolChanges(x.err); refused != nil {
		return refused
	}
	if x.err != nil { // not err: the SDK flattens those of the context
		return asCompactionRefusal(req, x.err)
	}
	return nil
}
