package langchain

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/exchange"
)

// answer reads one answer and hands it on piece by piece.
type answer struct {
	emit    func(llm.Delta) bool             // false = no more
	refusal func(reported []byte) *llm.Error // makes the error that the answer reports

	calls  calls
	usage  *core.Usage
	model  string // that answered, as the provider says
	finish string // the provider's word, as it came
	said   bool   // there was text, reasoning or a tool call
}

// read reads the answer to its end, streamed or not.
func (a *answer) read(body io.Reader) error {
	err := exchange.Reader{Whole: a.take, Stream: a.readStream, Page: func() error {
		return a.refusal([]byte(exchange.WebPage))
	}}.Read(body)
	if err != nil {
		return err
	}
	return a.end()
}

// readStream reads server-sent events. Once the finish reason is there, nothing
// can be lost any more: a stream that breaks off then is a whole answer.
func (a *answer) readStream(events *exchange.Events) error {
	for {
		e, err := events.Next()
		if err != nil && a.finish != "" && !isSize(err) {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return exchange.ErrTruncated
		}
		if err != nil {
			return err
		}
		if exchange.IsDone(e.Data) {
			return a.done()
		}
		if e.Name == "error" {
			return a.refusal(e.Data)
		}
		if err := a.take(e.Data); err != nil {
			return err
		}
	}
}

func isSize(err error) bool {
	var e *exchange.SizeError
	return errors.As(err, &e)
}

// done is called at [DONE]. A server that never gave a finish reason, but said
// something and ended in order, has finished.
func (a *answer) done() error {
	if a.finish != "" {
		return nil
	}
	if !a.said {
		return exchange.ErrTruncated
	}
	a.finish = "stop"
	return nil
}

// take handles one event.
func (a *answer) take(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil
	}
	if data[0] == '[' { // Gemini reports errors in a list
		return a.refusal(data)
	}
	if data[0] != '{' { // not of the protocol: a server's sign of life
		return nil
	}
	c, err := parseChunk(data)
	if err != nil {
		return fmt.Errorf("%w in the middle of an event", exchange.ErrTruncated)
	}
	if failure := c.failure(data); failure != nil {
		return a.refusal(failure)
	}
	if u := c.Usage.tokens(); u != nil {
		a.usage = u
	}
	if c.Model != "" {
		a.model = c.Model
	}
	for _, one := range c.Choices {
		if one.Index != 0 && len(c.Choices) > 1 { // we never ask for several (O17)
			continue
		}
		if err := a.choice(one); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) choice(one choice) error {
	if u := one.Usage.tokens(); u != nil {
		a.usage = u
	}
	p := one.Delta
	if p == nil {
		p = one.Message
	}
	if p != nil {
		if err := a.piece(p, one.Delta == nil); err != nil {
			return err
		}
	}
	// null and "" say nothing; they must not wipe out what was said (O9).
	if one.FinishReason != "" {
		a.finish = one.FinishReason
	}
	switch one.FinishReason {
	case "error", "insufficient_system_resource": // OpenRouter, Mistral; DeepSeek
		return a.refusal([]byte(`{"error":{"message":"the provider stopped with an error","type":"server_error"}}`))
	}
	return nil
}

// piece hands on what a delta holds. In a whole message every tool call stands
// for itself.
func (a *answer) piece(p *piece, whole bool) error {
	d := llm.Delta{
		Text:      p.Content.text + p.Refusal,
		Reasoning: p.ReasoningContent.text,
	}
	if d.Reasoning == "" { // some servers send both
		d.Reasoning = p.Reasoning.text
	}
	d.Reasoning += p.Content.reasoning
	if d.Text != "" || d.Reasoning != "" {
		a.said = true
		if !a.emit(d) {
			return exchange.ErrLeft
		}
	}
	for i := range p.ToolCalls {
		if whole {
			p.ToolCalls[i].Index = &i
		}
		call := a.calls.add(p.ToolCalls[i])
		if call == nil {
			continue
		}
		a.said = true
		if !a.emit(llm.Delta{ToolCall: call}) {
			return exchange.ErrLeft
		}
	}
	return nil
}

// end hands on what is known at the end only.
func (a *answer) end() error {
	if a.finish == "" {
		return exchange.ErrTruncated
	}
	for _, call := range a.calls.unnamed() {
		if !a.emit(llm.Delta{ToolCall: call}) {
			return exchange.ErrLeft
		}
	}
	if !a.emit(llm.Delta{Usage: a.usage, Finish: finishReason(a.finish, len(a.calls.slots) > 0), Model: a.model}) {
		return exchange.ErrLeft
	}
	return nil
}
