package openai

import (
	"cmp"
	"context"
	"io"
	"iter"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// Model is one model of one provider of the OpenAI dialect.
type Model struct {
	options Options
	dialect dialect
	peer    *providerhttp.Peer
}

// New returns the model that the options describe. Nothing is sent before the
// first Stream. Options that cannot work are refused with core.ErrInvalid.
func New(o Options) (*Model, error) {
	provider := cmp.Or(o.Provider, ProviderOpenAI)
	d := dialectOf(provider)
	o, err := o.Complete(provider, d.baseURL)
	if err != nil {
		return nil, err
	}
	d.alternates = d.alternates || o.BaseURL != d.baseURL // templates of many open models do
	d.legacyMaxTokens = d.legacyMaxTokens || o.LegacyMaxTokens
	o.Info.Lacks = LackedParameters(o.Provider, o.Model)
	o.Info.NoToolChoice = o.Info.NoToolChoice || d.noToolChoice
	return &Model{options: o, dialect: d, peer: o.NewPeer()}, nil
}

// Info describes the model.
func (m *Model) Info() llm.Info { return m.options.Info }

// Stream sends the request and yields the answer as it arrives.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return providerhttp.Stream(func(emit func(llm.Delta) bool) *llm.Error {
		body, err := m.requestBody(req)
		if err != nil {
			return m.peer.Invalid(err)
		}
		return m.peer.Post(ctx, "/chat/completions", body, nil, func(body io.Reader, refusal func([]byte) *llm.Error) error {
			a := &answer{Answer: providerhttp.Answer{Emit: emit, Refusal: refusal}, opensThought: m.options.Info.OpensThought}
			return a.read(body)
		})
	})
}
