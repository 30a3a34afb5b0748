package langchain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"strings"
	"time"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/ollama"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// Provider is the name of the provider in settings and errors.
const Provider = "langchain/ollama"

// defaultTemperature is Ollama's: langchaingo would send 0 with a request that has none.
const defaultTemperature = 0.8

// Options describe a model of Ollama. A whole answer may be one piece, so until the first
// the default limit is that of Idle.
type Options = providerhttp.Options

// Model is a model of Ollama behind langchaingo. Safe for concurrent use.
type Model struct {
	chat llms.Model
	info llm.Info
	peer *providerhttp.Peer
}

// New opens a model. It sends nothing. Options that cannot work are core.ErrInvalid. It asks for the
// context length for which prompts are planned: Ollama cuts longer prompts silently.
func New(o Options) (*Model, error) {
	o.Timeouts.Headers = cmp.Or(o.Timeouts.Headers, o.Timeouts.Idle, providerhttp.DefaultIdleTimeout)
	o, err := o.Complete(Provider, "http://127.0.0.1:11434")
	if err != nil {
		return nil, err
	}
	o.Info.Documents = llm.DocumentsNever
	o.Info.Lacks = []llm.Parameter{llm.Tools, llm.ReasoningEffort, llm.JSONSchema, llm.ParallelTools}
	m := &Model{info: o.Info, peer: o.NewPeer()}
	options := []ollama.Option{
		ollama.WithModel(o.Model), ollama.WithServerURL(strings.TrimSuffix(o.BaseURL, "/v1")), ollama.WithHTTPClient(m.peer.ClientForOthers()),
	}
	if o.Info.Window > 0 {
		options = append(options, ollama.WithRunnerNumCtx(o.Info.Window))
	}
	if m.chat, err = ollama.New(options...); err != nil {
		return nil, err
	}
	return m, nil
}

// Info describes the model.
func (m *Model) Info() llm.Info { return m.info }

// outcome is what the provider returned.
type outcome struct {
	response *llms.ContentResponse
	err      error
}

// Stream sends the request and yields the answer. Errors are *llm.Error: KindCanceled when
// ctx ended it, KindTimeout when the provider was silent for too long.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if ctx.Err() != nil {
			yield(llm.Delta{}, llm.CanceledError(ctx, m.info.Provider))
			return
		}
		limited, cancel := context.WithCancel(ctx)
		defer cancel()
		pieces, done := make(chan string), make(chan outcome, 1) // pieces are unbuffered: all are received before the outcome
		go func() { done <- m.generate(limited, req, pieces) }()
		isStreamed, limit := false, m.peer.Timeouts.Headers
		for {
			var silence <-chan time.Time
			if limit >= 0 {
				silence = time.After(limit)
			}
			select {
			case <-ctx.Done():
				yield(llm.Delta{}, llm.CanceledError(ctx, m.info.Provider))
				return
			case <-silence:
				yield(llm.Delta{}, &llm.Error{Kind: llm.KindTimeout, Provider: m.info.Provider,
					Message: fmt.Sprintf("no answer within %v", limit), Err: context.DeadlineExceeded})
				return
			case text := <-pieces:
				isStreamed, limit = isStreamed || text != "", m.peer.Timeouts.Idle
				if text != "" && !yield(llm.Delta{Text: text}, nil) {
					return
				}
			case out := <-done:
				m.yieldEnd(ctx, req, out, isStreamed, yield)
				return
			}
		}
	}
}

// generate calls the provider and sends the pieces of the text. After a cancellation it drops them
// without an error: clients that ignore the context would leak a goroutine at an error.
func (m *Model) generate(ctx context.Context, req llm.Request, pieces chan<- string) (out outcome) {
	defer func() {
		if p := recover(); p != nil {
			out = outcome{err: fmt.Errorf("langchaingo failed: %v", p)}
		}
	}()
	options := append(callOptions(req), llms.WithStreamingFunc(func(ctx context.Context, piece []byte) error {
		select {
		case pieces <- string(piece):
		case <-ctx.Done():
		}
		return nil
	}))
	out.response, out.err = m.chat.GenerateContent(ctx, toMessages(req), options...)
	return out
}

// yieldEnd yields what is known at the end only: the text of an answer that was not streamed, the
// token counts and the finish reason, or the error.
func (m *Model) yieldEnd(ctx context.Context, req llm.Request, out outcome, isStreamed bool, yield func(llm.Delta, error) bool) {
	var choice *llms.ContentChoice
	if out.response != nil && len(out.response.Choices) > 0 {
		choice = out.response.Choices[0]
	}
	var failure *llm.Error
	switch {
	case ctx.Err() != nil:
		failure = llm.CanceledError(ctx, m.info.Provider)
	case out.err != nil:
		failure = m.toError(out.err)
	case choice == nil:
		failure = &llm.Error{Kind: llm.KindEmpty, Provider: m.info.Provider, Message: "the answer is empty"}
	case choice.StopReason == "" && usageOf(choice.GenerationInfo) == nil:
		failure = &llm.Error{Kind: llm.KindTruncated, Provider: m.info.Provider, Message: providerhttp.ErrTruncated.Error(), Err: providerhttp.ErrTruncated}
	}
	if failure != nil {
		yield(llm.Delta{}, failure)
		return
	}
	if !isStreamed && choice.Content != "" && !yield(llm.Delta{Text: choice.Content}, nil) {
		return
	}
	last := llm.Delta{Usage: usageOf(choice.GenerationInfo), Finish: core.FinishReason(cmp.Or(choice.StopReason, string(core.FinishStop)))}
	if choice.StopReason == "" && last.Usage != nil && req.MaxOutputTokens > 0 && last.Usage.OutputTokens >= req.MaxOutputTokens {
		last.Finish = core.FinishLength
	}
	yield(last, nil)
}

// toError returns the error of a call as an *llm.Error.
func (m *Model) toError(err error) *llm.Error {
	if e := llm.AsError(err); e != nil {
		return e
	}
	var unreached *url.Error
	switch {
	case errors.As(err, &unreached):
		return m.peer.Unreached(unreached.Err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &llm.Error{Kind: llm.KindTruncated, Provider: m.info.Provider, Message: m.peer.Scrub(err.Error()), Err: err}
	default:
		return m.peer.Refusal(0, nil, []byte(err.Error()))
	}
}

// toMessages returns the prompt in langchaingo's types. User and assistant alternate.
func toMessages(req llm.Request) []llms.MessageContent {
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
	return out
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

// usageOf returns the token counts of a GenerationInfo; nil = it has none.
func usageOf(info map[string]any) *core.Usage {
	in, _ := info["PromptTokens"].(int)
	out, _ := info["CompletionTokens"].(int)
	if in <= 0 && out <= 0 {
		return nil
	}
	return &core.Usage{InputTokens: max(in, 0), OutputTokens: max(out, 0)}
}
