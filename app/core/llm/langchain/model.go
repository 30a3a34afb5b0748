// Package langchain is the only importer of langchaingo: it runs chat models of Ollama behind llm.Model,
// and asks servers of the OpenAI dialect for embeddings.
//
// The chat takes no tools: tool calls and their results go out as text. Each call has an HTTP client of its
// own, which has the time limits and keeps the cause of a failure. langchaingo has no field for PDFs and JSON
// schemas.
package langchain

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/ollama"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// defaultTemperature is Ollama's: langchaingo would send 0 with a request that has none.
const defaultTemperature = 0.8

// Options describe a model of Ollama, which may take long to load it: until the first byte the default
// limit is that of Idle.
type Options = providerhttp.Options

// Model is a model of Ollama behind langchaingo. Safe for concurrent use.
type Model struct {
	options []ollama.Option
	info    llm.Info
	peer    *providerhttp.Peer
}

// New opens a model. It sends nothing. Options that cannot work are core.ErrInvalid. It asks for the
// context length for which prompts are planned: Ollama cuts longer prompts silently.
func New(o Options) (*Model, error) {
	o.Timeouts.Headers = cmp.Or(o.Timeouts.Headers, o.Timeouts.Idle, providerhttp.DefaultIdleTimeout)
	o, err := o.Complete(llm.ProviderLangchainOllama, "http://127.0.0.1:11434")
	if err != nil {
		return nil, err
	}
	o.Info.Documents = llm.DocumentsNever
	o.Info.Lacks = []llm.Parameter{llm.Tools, llm.ReasoningEffort, llm.JSONSchema, llm.ParallelTools}
	options := []ollama.Option{ollama.WithModel(o.Model), ollama.WithServerURL(strings.TrimSuffix(o.BaseURL, "/v1"))}
	if o.Info.Window > 0 {
		options = append(options, ollama.WithRunnerNumCtx(o.Info.Window))
	}
	return &Model{options: options, info: o.Info, peer: o.NewPeer()}, nil
}

// Info describes the model.
func (m *Model) Info() llm.Info { return m.info }

// Stream sends the request and yields the answer.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return providerhttp.Stream(func(emit func(llm.Delta) bool) *llm.Error {
		if ctx.Err() != nil {
			return llm.CanceledError(ctx, m.info.Provider)
		}
		exchange := &providerhttp.Exchange{Peer: m.peer, Streams: true}
		client, err := ollama.New(append(slices.Clone(m.options), ollama.WithHTTPClient(&http.Client{Transport: exchange}))...)
		if err != nil {
			return m.peer.Invalid(err)
		}
		options := append(callOptions(req), llms.WithStreamingFunc(func(_ context.Context, piece []byte) error {
			if len(piece) > 0 && !emit(llm.Delta{Text: string(piece)}) {
				return providerhttp.ErrLeft
			}
			return nil
		}))
		system, turns := req.SystemText(), llm.Alternating(llm.ToolTurnsAsText(req.Messages))
		var out []llms.MessageContent
		if system != "" {
			out = append(out, llms.TextParts(llms.ChatMessageTypeSystem, system))
		}
		for _, turn := range turns {
			message := llms.MessageContent{Role: llms.ChatMessageTypeHuman}
			if turn.Role == core.RoleAssistant {
				message.Role = llms.ChatMessageTypeAI
			}
			if text := llm.PlainText(turn); text != llm.EmptyText || len(turn.Media) == 0 {
				message.Parts = append(message.Parts, llms.TextContent{Text: text})
			}
			for _, media := range turn.Media {
				message.Parts = append(message.Parts, llms.BinaryPart(media.MediaType, media.Data))
			}
			out = append(out, message)
		}
		answer, err := client.GenerateContent(ctx, out, options...)
		switch {
		case exchange.Err != nil: // which err has lost, if it is one
			return exchange.Err
		case err != nil: // Ollama's, in the middle of the answer
			return m.peer.Refusal(0, nil, []byte(err.Error()))
		}
		usage := usageOf(answer)
		if usage == nil {
			return &llm.Error{Kind: llm.KindTruncated, Provider: m.info.Provider, Message: providerhttp.ErrTruncated.Error(), Err: providerhttp.ErrTruncated}
		}
		last := llm.Delta{Usage: usage, Finish: core.FinishStop} // Ollama's own reason gets lost
		if req.MaxOutputTokens > 0 && usage.OutputTokens >= req.MaxOutputTokens {
			last.Finish = core.FinishLength
		}
		emit(last)
		return nil
	})
}

// callOptions returns the parameters of the request.
func callOptions(req llm.Request) []llms.CallOption {
	temperature := defaultTemperature
	if req.Temperature != nil {
		temperature = *req.Temperature
	}
	options := []llms.CallOption{llms.WithTemperature(temperature)}
	if req.Seed != nil {
		options = append(options, llms.WithSeed(*req.Seed))
	}
	if req.MaxOutputTokens > 0 {
		options = append(options, llms.WithMaxTokens(req.MaxOutputTokens))
	}
	if req.TopP != nil {
		options = append(options, llms.WithTopP(*req.TopP))
	}
	if len(req.Stop) > 0 {
		options = append(options, llms.WithStopWords(req.Stop))
	}
	if req.ResponseFormat != nil && req.ResponseFormat.Type == core.FormatJSONObject {
		options = append(options, llms.WithJSONMode())
	}
	return options
}

// usageOf returns the token counts of an answer; nil = it has none, since its end did not come.
func usageOf(answer *llms.ContentResponse) *core.Usage {
	if len(answer.Choices) == 0 {
		return nil
	}
	in, _ := answer.Choices[0].GenerationInfo["PromptTokens"].(int)
	out, _ := answer.Choices[0].GenerationInfo["CompletionTokens"].(int)
	if in <= 0 && out <= 0 {
		return nil
	}
	return &core.Usage{InputTokens: max(in, 0), OutputTokens: max(out, 0)}
}
