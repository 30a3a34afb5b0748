package anthropic

import (
	"context"
	"io"
	"iter"
	"net/http"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// Model is one model of Anthropic.
type Model struct {
	options Options
	cloud   Cloud
	claude  generation
	peer    *providerhttp.Peer
}

// New returns the model that the options describe. Nothing is sent before the
// first Stream. Options that cannot work are refused with core.ErrInvalid.
func New(options Options) (*Model, error) { return NewOnCloud(options, Cloud{}) }

// NewOnCloud is New for a model that the cloud serves.
func NewOnCloud(options Options, cloud Cloud) (*Model, error) {
	options, err := complete(options, cloud)
	if err != nil {
		return nil, err
	}
	m := &Model{options: options, cloud: cloud, claude: generationOf(options.Model), peer: options.NewPeer()}
	m.peer.Client.Transport = cloud.transport(m.peer.Client.Transport)
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
		// The API refuses a prefilled answer beside a compaction.
		req.Stop, req.ResponseFormat, req.ToolChoice, req.ParallelToolCalls = nil, nil, core.ToolChoiceAuto, nil
	}
	return providerhttp.Stream(func(emit func(llm.Delta) bool) *llm.Error {
		err := m.callProvider(ctx, req, emit)
		if !m.refusedThoughts(req, err) {
			return err
		}
		if !emit(llm.Delta{Dropped: &llm.DroppedThoughts{Contract: llm.PrefixRefuses, Reasons: map[llm.DropReason]int{llm.DropPrefix: m.countThoughts(req)}}}) {
			return nil
		}
		return m.callProvider(ctx, req.WithoutThoughts(), emit)
	})
}

// callProvider sends the request and emits the answer.
func (m *Model) callProvider(ctx context.Context, req llm.Request, emit func(llm.Delta) bool) *llm.Error {
	body, err := m.requestBody(req)
	if err != nil {
		return m.peer.Invalid(err)
	}
	if req.Compact {
		emitAll := emit
		emit = func(d llm.Delta) bool { // without the answer
			d.Text, d.Reasoning, d.Part, d.ToolCall = "", "", nil, nil
			return d == (llm.Delta{}) || emitAll(d)
		}
	}
	prepare := func(header http.Header) {
		header.Set("Anthropic-Version", "2023-06-01")
		for _, beta := range m.betas(req) {
			header.Add("Anthropic-Beta", beta)
		}
		if m.options.APIKey != "" && m.cloud.Provider == "" {
			header.Set("X-Api-Key", m.options.APIKey)
		}
	}
	failure := m.peer.Post(ctx, "/"+m.cloud.path(), body, prepare, func(body io.Reader, refusal func([]byte) *llm.Error) error {
		shared := providerhttp.Answer{Emit: emit, Refusal: refusal}
		return (&answer{Answer: shared, origin: m.signatureOrigin(), provider: m.options.Provider, compacts: req.Compact}).read(body)
	})
	if refused := req.RefusedToolChanges(failure); refused != nil {
		return refused
	}
	return asCompactionRefusal(req, failure)
}
