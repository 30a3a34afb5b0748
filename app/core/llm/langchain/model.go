package langchain

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// Options describe a model of one of the Providers.
type Options struct {
	Name     string // what agents call it; empty = Model
	Model    string // what the provider calls it
	Provider string // one of Providers
	BaseURL  string // empty = the provider's own
	APIKey   string // empty = none is sent; never in errors or logs
	// Info describes the model; an empty Name or Provider is taken from above.
	Info llm.Info
	// Transport sends the requests of providers that accept an HTTP client; nil = one that
	// honors the proxy variables of the environment.
	Transport http.RoundTripper
	// Timeouts are our own limits. A whole answer may be one piece, so until the first the default is that of Idle.
	Timeouts providerhttp.Timeouts
}

// Format keeps the key out of printed Options.
func (o Options) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{%s model %s at %s}", o.Provider, o.Model, providerhttp.Redacted(o.BaseURL))
}

// LogValue keeps the key out of logs.
func (o Options) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(o)) }

// Model is a model of langchaingo. Safe for concurrent use if the llms.Model is.
type Model struct {
	chat   llms.Model
	info   llm.Info
	traits traits
	peer   *providerhttp.Peer
	limits providerhttp.Timeouts
}

// New opens a model of one of the Providers. It sends nothing. Options that cannot work
// are core.ErrInvalid.
func New(o Options) (*Model, error) {
	t, err := findProvider(o.Provider)
	if err != nil {
		return nil, err
	}
	if o.Model == "" {
		return nil, core.Errorf(core.ErrInvalid, "a model of provider %s has no model name", o.Provider)
	}
	if o.Name == "" {
		o.Name = o.Model
	}
	if o.BaseURL = strings.TrimRight(o.BaseURL, "/"); o.BaseURL == "" {
		o.BaseURL = t.baseURL
	}
	if err := providerhttp.CheckURL(o.Name, o.BaseURL); err != nil {
		return nil, err
	}
	o.Info = t.describeModel(o)
	peer := &providerhttp.Peer{Provider: o.Provider, BaseURL: o.BaseURL, Key: o.APIKey, Client: providerhttp.NewClient(o.Transport)}
	client := *peer.Client
	client.Transport = &transport{peer: peer, next: peer.Client.Transport}
	chat, err := t.open(o, &client)
	if err != nil {
		return nil, err
	}
	return newModel(chat, o.Info, t, peer, o.Timeouts), nil
}

// FromModel adapts any model of langchaingo. Info says what it can do; what it does not
// take belongs in Info.Lacks. A tool choice is sent only where Info.NoToolChoice is false.
func FromModel(chat llms.Model, info llm.Info) *Model {
	if info.Provider == "" {
		info.Provider = strings.TrimSuffix(Prefix, "/")
	}
	for _, p := range []llm.Parameter{llm.ReasoningEffort, llm.JSONSchema, llm.ParallelTools} { // langchaingo has no option for them
		if !slices.Contains(info.Lacks, p) {
			info.Lacks = append(slices.Clone(info.Lacks), p)
		}
	}
	return newModel(chat, info, traits{}, &providerhttp.Peer{Provider: info.Provider}, providerhttp.Timeouts{})
}

func newModel(chat llms.Model, info llm.Info, t traits, peer *providerhttp.Peer, limits providerhttp.Timeouts) *Model {
	limits.Idle = cmp.Or(limits.Idle, providerhttp.DefaultIdleTimeout)
	limits.Headers = cmp.Or(limits.Headers, limits.Idle)
	return &Model{chat: chat, info: info, traits: t, peer: peer, limits: limits}
}

// describeModel returns the Info of a model of the provider.
func (t traits) describeModel(o Options) llm.Info {
	info := o.Info
	if info.Name == "" {
		info.Name = o.Name
	}
	if info.Provider == "" {
		info.Provider = o.Provider
	}
	info.Images = info.Images && t.images
	info.Documents = llm.DocumentsNever
	info.Lacks = t.lacks
	return info
}

// Info describes the model.
func (m *Model) Info() llm.Info { return m.info }

// Stream sends the request and yields the answer. Errors are *llm.Error: KindCanceled when
// ctx ended it, KindTimeout when the provider was silent for too long.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if ctx.Err() != nil {
			yield(llm.Delta{}, llm.CanceledError(ctx, m.info.Provider))
			return
		}
		messages, err := m.toMessages(req)
		if err != nil {
			yield(llm.Delta{}, err)
			return
		}
		limited, cancel := context.WithCancel(ctx)
		defer cancel()
		c := &call{model: m, req: req, chunks: make(chan string), done: make(chan outcome, 1)}
		go c.run(limited, messages)
		c.receiveAnswer(ctx, yield)
	}
}
