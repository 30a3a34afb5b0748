package responses

import (
	"context"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
	"bobbin/app/core/llm/providerhttp"
)

// Options say which model is called, and how. BaseURL is where /responses is, without it.
type Options = providerhttp.Options

// Model is one model behind the Responses API.
type Model struct {
	options          Options
	peer             *providerhttp.Peer
	withoutSummaries atomic.Bool // the API has refused to summarize reasoning
}

// New returns the model that the options describe. Nothing is sent before the
// first Stream. Options that cannot work are refused with core.ErrInvalid.
func New(o Options) (*Model, error) {
	o, err := o.Complete(llm.ProviderOpenAI, openai.BaseURL(llm.ProviderOpenAI))
	if err != nil {
		return nil, err
	}
	out := openai.LackedParameters(llm.ProviderOpenAI, o.Model)
	for _, p := range []llm.Parameter{llm.Stop, llm.Seed} {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	o.Info.Lacks = out
	o.Info.ReasoningUncounted = true
	o.Info.ThoughtOrigin = o.Provider + "/" + o.Model
	o.Info.SystemMessages = llm.PrefixContractOf(o.Model).Binds()
	if o.Info.SystemMessages {
		o.Info.ToolChanges = llm.ToolsAdded
	}
	o.Info.Account = providerhttp.Account(o.BaseURL, o.APIKey)
	return &Model{options: o, peer: o.NewPeer()}, nil
}

// Info describes the model.
func (m *Model) Info() llm.Info { return m.options.Info }

// Stream sends the request and yields the answer as it arrives.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return providerhttp.Stream(func(emit func(llm.Delta) bool) *llm.Error {
		err := m.callProvider(ctx, req, emit)
		if m.refusedSummaries(req, err) {
			err = m.callProvider(ctx, req, emit)
		}
		// Reasoning that the API cannot decrypt: such a conversation could never go on.
		refused := err != nil && err.Kind == llm.KindInvalid && err.Status == http.StatusBadRequest &&
			(err.Code == "invalid_encrypted_content" || strings.Contains(err.Message, "encrypted content"))
		if !refused || m.reasoningCount(req) == 0 {
			return err
		}
		// Blobs are readable for one account and model only: it is not the prompt before them.
		if !emit(llm.Delta{Dropped: &llm.DroppedThoughts{Contract: llm.PrefixDrops, Reasons: map[llm.DropReason]int{llm.DropOther: m.reasoningCount(req)}}}) {
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
	return req.ClassifyRefusal(m.peer.Post(ctx, "/responses", body, nil, func(body io.Reader, refusal func([]byte) *llm.Error) error {
		a := &answer{Answer: providerhttp.Answer{Emit: emit, Refusal: refusal}, origin: m.options.Info.ThoughtOrigin, items: map[int]*openedItem{}}
		if err := a.Read(body, a.readWhole, a.handleEvent, func() bool { return a.last != nil }); err != nil {
			return err
		}
		if a.last == nil {
			return providerhttp.ErrTruncated
		}
		return a.EmitDelta(*a.last)
	}))
}
