package langchain

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tmc/langchaingo/llms"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// call is one call of a model. run belongs to the provider's goroutine, receive to the
// caller's.
type call struct {
	model    *Model
	req      llm.Request
	chunks   chan string // pieces of the text, unbuffered: all are received before the outcome
	done     chan outcome
	broken   atomic.Pointer[error] // why the body of the answer could not be read to its end
	streamed strings.Builder       // the text that was yielded
}

// outcome is what the provider returned.
type outcome struct {
	response *llms.ContentResponse
	err      error
}

// callKey is the key of the context that holds the *call.
type callKey struct{}

// run calls the provider.
func (c *call) run(ctx context.Context, messages []llms.MessageContent) {
	var out outcome
	defer func() {
		if p := recover(); p != nil {
			out = outcome{err: fmt.Errorf("langchaingo failed: %v", p)}
		}
		c.done <- out
	}()
	options := c.model.callOptions(c.req)
	if !c.model.sendsTools(c.req) {
		options = append(options, llms.WithStreamingFunc(c.sendChunk))
	}
	out.response, out.err = c.model.chat.GenerateContent(context.WithValue(ctx, callKey{}, c), messages, options...)
}

// sendChunk hands a piece of text to the caller. After a cancellation it drops the piece
// without an error: clients that ignore the context would leak a goroutine at an error.
func (c *call) sendChunk(ctx context.Context, chunk []byte) error {
	select {
	case c.chunks <- string(chunk):
	case <-ctx.Done():
	}
	return nil
}

// receiveAnswer yields what the provider sends until the answer is complete, ctx ends, or the
// provider is silent for too long.
func (c *call) receiveAnswer(ctx context.Context, yield func(llm.Delta, error) bool) {
	m := c.model
	limit := m.limits.Headers
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
		case text := <-c.chunks:
			limit = m.limits.Idle
			c.streamed.WriteString(text)
			if c.streamed.Len() > providerhttp.MaxAnswer {
				yield(llm.Delta{}, m.peer.TooLarge())
				return
			}
			if text != "" && !yield(llm.Delta{Text: text}, nil) {
				return
			}
		case out := <-c.done:
			c.emitLast(ctx, out, yield)
			return
		}
	}
}

// emitLast yields what is known at the end only.
func (c *call) emitLast(ctx context.Context, out outcome, yield func(llm.Delta, error) bool) {
	if err := c.failureOf(ctx, out); err != nil {
		yield(llm.Delta{}, err)
		return
	}
	for _, d := range c.lastDeltas(out.response) {
		if !yield(d, nil) {
			return
		}
	}
}
