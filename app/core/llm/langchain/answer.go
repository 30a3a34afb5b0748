package langchain

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// errLeft says that the caller does not want more of the answer.
var errLeft = errors.New("the caller left")

// errTruncated says that the answer ended without saying so.
var errTruncated = errors.New("it ended without a finish reason")

// answer reads one answer and hands it on piece by piece.
type answer struct {
	emit    func(llm.Delta) bool             // false = no more
	refusal func(reported []byte) *llm.Error // makes the error that the answer reports

	calls  calls
	usage  *core.Usage
	finish string // the provider's word, as it came
	said   bool   // there was text, reasoning or a tool call
}

// read reads the answer to its end, streamed or not.
func (a *answer) read(body io.Reader) error {
	r := bufio.NewReaderSize(body, 4<<10)
	first, err := firstByte(r)
	if err != nil {
		return err
	}
	switch first {
	case '{', '[':
		err = a.readWhole(r)
	case '<':
		return a.refusal([]byte("a web page came instead of an answer: is the base_url right?"))
	default:
		err = a.readStream(r)
	}
	if err != nil {
		return err
	}
	return a.end()
}

// firstByte returns the first byte that is not blank, without taking it.
func firstByte(r *bufio.Reader) (byte, error) {
	for range maxLine {
		b, err := r.ReadByte()
		if errors.Is(err, io.EOF) {
			return 0, errTruncated
		}
		if err != nil {
			return 0, err
		}
		// Blank, or of a byte order mark.
		if strings.IndexByte(" \t\r\n\xEF\xBB\xBF", b) < 0 {
			return b, r.UnreadByte()
		}
	}
	return 0, &sizeError{"the blank beginning of the answer", maxLine}
}

// readWhole reads the answer of a server that did not stream.
func (a *answer) readWhole(r io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	if err != nil {
		return err
	}
	if len(text) > maxAnswer {
		return &sizeError{"the answer", maxAnswer}
	}
	return a.take(text)
}

// readStream reads server-sent events. Once the finish reason is there, nothing
// can be lost any more: a stream that breaks off then is a whole answer.
func (a *answer) readStream(r io.Reader) error {
	events := newEventReader(r)
	for {
		e, err := events.next()
		if err != nil && a.finish != "" && !isSize(err) {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return errTruncated
		}
		if err != nil {
			return err
		}
		if isDone(e.data) {
			return a.done()
		}
		if e.name == "error" {
			return a.refusal(e.data)
		}
		if err := a.take(e.data); err != nil {
			return err
		}
	}
}

func isSize(err error) bool {
	var e *sizeError
	return errors.As(err, &e)
}

// done is called at [DONE]. A server that never gave a finish reason, but said
// something and ended in order, has finished.
func (a *answer) done() error {
	if a.finish != "" {
		return nil
	}
	if !a.said {
		return errTruncated
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
		return fmt.Errorf("%w in the middle of an event", errTruncated)
	}
	if failure := c.failure(data); failure != nil {
		return a.refusal(failure)
	}
	if u := c.Usage.tokens(); u != nil {
		a.usage = u
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
			return errLeft
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
			return errLeft
		}
	}
	return nil
}

// end hands on what is known at the end only.
func (a *answer) end() error {
	if a.finish == "" {
		return errTruncated
	}
	for _, call := range a.calls.unnamed() {
		if !a.emit(llm.Delta{ToolCall: call}) {
			return errLeft
		}
	}
	if !a.emit(llm.Delta{Usage: a.usage, Finish: finishReason(a.finish, len(a.calls.slots) > 0)}) {
		return errLeft
	}
	return nil
}
