package openai

import (
	"bytes"
	"cmp"
	"errors"
	"io"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// answer reads one answer and emits it piece by piece.
type answer struct {
	providerhttp.Answer

	opensThought bool // see llm.Info

	calls      calls
	usage      *core.Usage
	model      string // that answered, as reported
	finish     string // the provider's word, as it came
	hasContent bool   // there was text, reasoning or a tool call
	done       bool   // [DONE] came

	template template // of the last chunk
	misses   int      // templates that no chunk has fitted, in a row
}

// maxMisses is after how many templates that did not fit no more are made: the server varies its chunks.
const maxMisses = 8

// read reads the answer to its end, streamed or not. Once the finish reason is there, nothing can be lost any
// more: a stream that breaks off then is a whole answer.
func (a *answer) read(body io.Reader) error {
	var tooLong *providerhttp.SizeError
	err := a.Read(body, a.handleEvent, a.handleEvent, func() bool { return a.done })
	if err != nil && (a.finish == "" || llm.AsError(err) != nil || errors.As(err, &tooLong)) {
		return err
	}
	if a.finish == "" {
		return providerhttp.ErrTruncated
	}
	for i, s := range a.calls.slots { // results must be able to name their calls
		if s.id != "" {
			continue
		}
		s.id = llm.NewCallID()
		if err := a.EmitDelta(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: i, ID: s.id}}); err != nil {
			return err
		}
	}
	return a.EmitDelta(llm.Delta{Usage: a.usage, Finish: finishReason(a.finish, len(a.calls.slots) > 0), Model: a.model})
}

// handleEvent handles one event.
func (a *answer) handleEvent(data []byte) error {
	if providerhttp.IsDone(data) {
		if a.done = true; a.finish == "" && a.hasContent { // a server that sent content, but no finish reason, has finished
			a.finish = "stop"
		}
		return nil
	}
	if bytes.HasPrefix(data, []byte("[")) { // Gemini reports errors in a list
		return a.Refusal(data)
	}
	if text := a.template.text(data); text != "" {
		a.misses = 0
		return a.emitPiece(&piece{Content: content{text: text}}, false)
	}
	var c chunk
	if err := providerhttp.Decode(data, &c); err != nil {
		return err
	}
	if failure := c.reportedError(data); failure != nil {
		return a.Refusal(failure)
	}
	if u := c.Usage.toCore(); u != nil {
		a.usage = u
	}
	a.model = cmp.Or(c.Model, a.model)
	a.template = template{} // what the last chunk reported holds for those that fit its template
	if len(c.Choices) == 1 && c.Choices[0].Delta != nil && c.Choices[0].Delta.Content.text != "" && a.misses < maxMisses {
		a.template, a.misses = newTemplate(bytes.Clone(data)), a.misses+1
	}
	for _, one := range c.Choices {
		if one.Index != 0 && len(c.Choices) > 1 { // only one is requested
			continue
		}
		if u := one.Usage.toCore(); u != nil {
			a.usage = u
		}
		if p := cmp.Or(one.Delta, one.Message); p != nil {
			if err := a.emitPiece(p, one.Delta == nil); err != nil {
				return err
			}
		}
		a.finish = cmp.Or(one.FinishReason, a.finish)                                          // null and "" must not replace an earlier reason
		if one.FinishReason == "error" || one.FinishReason == "insufficient_system_resource" { // OpenRouter, Mistral; DeepSeek
			return a.Refusal([]byte(`{"error":{"message":"the provider stopped with an error","type":"server_error"}}`))
		}
	}
	return nil
}

// emitPiece emits the content of a delta. In a complete message every tool call is
// complete.
func (a *answer) emitPiece(p *piece, whole bool) error {
	d := llm.Delta{
		Text:      p.Content.text + p.Refusal,
		Reasoning: p.ReasoningContent.text,
	}
	if d.Reasoning == "" { // some servers send both
		d.Reasoning = p.Reasoning.text
	}
	d.Reasoning += p.Content.reasoning
	if d.Text != "" || d.Reasoning != "" {
		if a.opensThought && !a.hasContent && d.Reasoning == "" {
			d.Text = "<think>" + d.Text
		}
		a.hasContent = true
		if err := a.EmitDelta(d); err != nil {
			return err
		}
	}
	for i := range p.ToolCalls {
		if whole {
			p.ToolCalls[i].Index = &i
		}
		call := a.calls.addPiece(p.ToolCalls[i])
		if call == nil {
			continue
		}
		a.hasContent = true
		if err := a.EmitDelta(llm.Delta{ToolCall: call}); err != nil {
			return err
		}
	}
	return nil
}
