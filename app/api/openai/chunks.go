package openai

import (
	"bytes"
	"encoding/json"

	"bobbin/app/core"
)

// chunkEncoder writes an answer as chunks of a chat completion.
type chunkEncoder struct {
	answer answer
	chunk  chunk // what all have in common
	choice [1]chunkChoice
	json   *jsonAppender
	usage  bool // the client asks for it
	begun  bool // the first chunk is written
}

// chunk is a piece of a chat completion.
type chunk struct {
	ID      string          `json:"id"`
	Object  string          `json:"object"`
	Created int64           `json:"created"`
	Model   string          `json:"model"`
	Choices []chunkChoice   `json:"choices"`
	Usage   json.RawMessage `json:"usage,omitempty"` // null but in the last chunk; empty = the client does not ask for it
}

type chunkChoice struct {
	Index        int          `json:"index"`
	Delta        messageDelta `json:"delta"`
	FinishReason *string      `json:"finish_reason"`
}

// messageDelta is a piece of a message.
type messageDelta struct {
	Role      string      `json:"role,omitempty"`
	Content   *string     `json:"content,omitempty"`
	Reasoning string      `json:"reasoning_content,omitempty"`
	ToolCalls []callDelta `json:"tool_calls,omitempty"`
}

// callDelta is a piece of a call of a tool. The first one of a call has its id and name.
type callDelta struct {
	Index int `json:"index"`
	toolCall
}

func newChunkEncoder(run core.Run, body completionRequest, created int64) *chunkEncoder {
	e := &chunkEncoder{usage: body.StreamOptions.IncludeUsage, json: newJSONAppender()}
	e.chunk = chunk{ID: completionID(run.ID), Object: "chat.completion.chunk", Created: created, Model: body.Model}
	if e.usage {
		e.chunk.Usage = json.RawMessage("null")
	}
	return e
}

// queuedComment tells a client, in the only way that this protocol has, that its run waits for an earlier
// run of the session or a free slot.
const queuedComment = ": queued\n\n"

// encode is a handlers.Encoder. An answer that is discarded after the client has got a part of it
// is an error: this protocol cannot take it back.
func (e *chunkEncoder) encode(buf []byte, event core.Event) ([]byte, error) {
	p, err := e.answer.followEvent(event)
	if p.discarded {
		err = core.Errorf(core.ErrModel, "the model's answer broke off after it had begun, and a new one begins; send the message again")
	}
	if err != nil {
		return buf, err
	}
	if event.Type == core.EventRunQueued {
		return append(buf, queuedComment...), nil
	}
	if !e.begun {
		e.begun = true
		buf = e.appendDelta(buf, messageDelta{Role: "assistant", Content: new(string)}, nil)
	}
	if p.reasoning != "" {
		buf = e.appendDelta(buf, messageDelta{Reasoning: p.reasoning}, nil)
	}
	if p.text != "" {
		buf = e.appendDelta(buf, messageDelta{Content: &p.text}, nil)
	}
	if len(p.calls) > 0 {
		buf = e.appendDelta(buf, messageDelta{ToolCalls: p.calls}, nil)
	}
	if !p.end {
		return buf, nil
	}
	buf = e.appendDelta(buf, messageDelta{}, new(e.answer.finishReason()))
	if e.usage {
		e.chunk.Usage, e.chunk.Choices = e.json.append(nil, usageOf(e.answer.usage)), e.choice[:0]
		buf = e.appendChunk(buf)
	}
	return append(buf, "data: [DONE]\n\n"...), nil
}

// appendDelta appends a chunk with a piece of the message.
func (e *chunkEncoder) appendDelta(buf []byte, delta messageDelta, finish *string) []byte {
	e.choice[0] = chunkChoice{Delta: delta, FinishReason: finish}
	e.chunk.Choices = e.choice[:]
	return e.appendChunk(buf)
}

func (e *chunkEncoder) appendChunk(buf []byte) []byte {
	return append(e.json.append(append(buf, "data: "...), &e.chunk), "\n\n"...)
}

// jsonAppender appends values as JSON, without a buffer for each: an answer has one for each word.
type jsonAppender struct {
	out bytes.Buffer
	enc *json.Encoder // into out
}

func newJSONAppender() *jsonAppender {
	a := &jsonAppender{}
	a.enc = json.NewEncoder(&a.out)
	a.enc.SetEscapeHTML(false)
	return a
}

// append appends a value of this package: it has strings and numbers, which cannot fail.
func (a *jsonAppender) append(buf []byte, v any) []byte {
	a.out.Reset()
	if err := a.enc.Encode(v); err != nil {
		panic("openai: not JSON: " + err.Error())
	}
	return append(buf, bytes.TrimSuffix(a.out.Bytes(), []byte("\n"))...)
}
