package langchain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tmc/langchaingo/llms"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// Options describe a model of one of the Providers. A whole answer may be one piece, so until the first
// the default limit is that of Idle.
type Options = providerhttp.Options

// Model is a model of langchaingo. Safe for concurrent use if the llms.Model is.
type Model struct {
	chat   llms.Model
	info   llm.Info
	traits traits
	peer   *providerhttp.Peer
}

// New opens a model of one of the Providers. It sends nothing. Options that cannot work
// are core.ErrInvalid.
func New(o Options) (*Model, error) {
	t, err := findProvider(o.Provider)
	if err != nil {
		return nil, err
	}
	o.Timeouts.Headers = cmp.Or(o.Timeouts.Headers, o.Timeouts.Idle, providerhttp.DefaultIdleTimeout)
	if o, err = o.Complete(o.Provider, t.baseURL); err != nil {
		return nil, err
	}
	o.Info.Images = o.Info.Images && t.images
	o.Info.Documents, o.Info.Lacks = llm.DocumentsNever, t.lacks
	m := FromModel(nil, o.Info)
	m.traits, m.peer = t, o.NewPeer()
	if m.chat, err = t.open(o, m.peer.ClientForOthers()); err != nil {
		return nil, err
	}
	return m, nil
}

// FromModel adapts any model of langchaingo. What it does not take belongs in Info.Lacks.
func FromModel(chat llms.Model, info llm.Info) *Model {
	info.Provider = cmp.Or(info.Provider, strings.TrimSuffix(Prefix, "/"))
	for _, p := range []llm.Parameter{llm.Tools, llm.ReasoningEffort, llm.JSONSchema, llm.ParallelTools} {
		if !slices.Contains(info.Lacks, p) {
			info.Lacks = append(slices.Clone(info.Lacks), p)
		}
	}
	const idle = providerhttp.DefaultIdleTimeout
	return &Model{chat: chat, info: info, peer: &providerhttp.Peer{Provider: info.Provider, Timeouts: providerhttp.Timeouts{Headers: idle, Idle: idle}}}
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
	options := append(m.callOptions(req), llms.WithStreamingFunc(func(ctx context.Context, piece []byte) error {
		select {
		case pieces <- string(piece):
		case <-ctx.Done():
		}
		return nil
	}))
	out.response, out.err = m.chat.GenerateContent(ctx, m.toMessages(req), options...)
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
	case m.traits.reportsEnd && choice.StopReason == "" && usageOf(choice.GenerationInfo) == nil:
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
	last.Model, _ = choice.GenerationInfo["model"].(string)
	isCut := choice.StopReason == "" && last.Usage != nil && req.MaxOutputTokens > 0 && last.Usage.OutputTokens >= req.MaxOutputTokens
	if isCut || choice.StopReason == "model_length" {
		last.Finish = core.FinishLength
	}
	yield(last, nil)
}

// statusText finds the HTTP status at the beginning of an error's text.
var statusText = regexp.MustCompile(`(?i)^.{0,80}?\b(?:http error|status(?: code)?)[:= (]*([45]\d\d)\b[:,) ]*`)

// toError returns the error of a provider as an *llm.Error. An error that has lost its type
// is classified by the status in its text, and by its words.
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
	}
	text, status := err.Error(), 0
	if found := statusText.FindStringSubmatch(text); found != nil {
		status, _ = strconv.Atoi(found[1]) // three digits
		text = strings.TrimPrefix(text, found[0])
	}
	return m.peer.Refusal(status, nil, []byte(text))
}
