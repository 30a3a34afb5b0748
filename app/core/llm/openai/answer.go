package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"unicode/utf8"

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
	for i, s := range a.calls { // results must be able to name their calls
		if s.id != "" {
			continue
		}
		s.id = llm.NewCallID()
		if err := a.EmitDelta(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: i, ID: s.id}}); err != nil {
			return err
		}
	}
	return a.EmitDelta(llm.Delta{Usage: a.usage, Finish: finishReason(a.finish, len(a.calls) > 0), Model: a.model})
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
	reasoning := cmp.Or(p.ReasoningContent.text, p.Reasoning.text) // some servers send both
	d := llm.Delta{Text: p.Content.text + p.Refusal, Reasoning: reasoning + p.Content.reasoning}
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

// template is what the chunks of one answer have around their text. Servers send a chunk for each
// word, and all but the word is the same: it need not be parsed again. The zero value fits nothing.
type template struct{ before, after []byte }

// newTemplate returns the template of a chunk that brings text and nothing else; the zero one if it
// finds none. The parser itself proves it, with another text in the same place.
func newTemplate(data []byte) template {
	const field, probe = `"content":`, `"probe"`
	head, rest, found := bytes.Cut(data, []byte(field+`"`))
	_, after, whole := bytes.Cut(rest, []byte(`"`))
	if !found || !whole {
		return template{}
	}
	t := template{data[:len(head)+len(field)], after}
	var c chunk
	err := providerhttp.Decode([]byte(string(t.before)+probe+string(after)), &c)
	text := []choice{{Delta: &piece{Content: content{text: "probe"}}}}
	if err != nil || c.Object == "error" || !reflect.DeepEqual(c, chunk{Object: c.Object, Model: c.Model, Choices: text}) {
		return template{}
	}
	return t
}

// text returns the text of a chunk that differs from the template in nothing else, byte for byte what
// the parser reads; empty if it differs.
func (t template) text(data []byte) (text string) {
	literal, begins := bytes.CutPrefix(data, t.before)
	literal, ends := bytes.CutSuffix(literal, t.after)
	if len(t.before) == 0 || !begins || !ends || len(literal) == 0 || literal[0] != '"' || readString(literal, &text) != nil {
		return ""
	}
	return text
}

// readString is json.Unmarshal of a string: one without escapes, as most words of an answer are, is its own text.
func readString(literal []byte, text *string) error {
	inner, isString := bytes.CutPrefix(literal, []byte(`"`))
	inner, ends := bytes.CutSuffix(inner, []byte(`"`))
	if isEscaped := func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == utf8.RuneError }; isString && ends && !bytes.ContainsFunc(inner, isEscaped) {
		*text = string(inner)
		return nil
	}
	return json.Unmarshal(literal, text)
}
