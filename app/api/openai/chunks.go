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
	any    bool // there is text of earlier messages
	calls  int  // of earlier messages
	buf    []byte
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
	e.answer = answer{run: run, to: e}
	return e
}

// queuedComment tells a client, in the only way that this protocol has, that its run waits for an earlier
// run of the session, a free slot or one of its model.
const queuedComment = ": queued\n\n"

// encode is a handlers.Encoder. An answer that is discarded after the client has got a part of it
// is an error: this protocol cannot take it back.
func (e *chunkEncoder) encode(buf []byte, event core.Event) ([]byte, error) {
	if node, _ := event.Data.(core.NodeData); event.Type == core.EventRunQueued || node.Node == core.NodeModelSlot {
		return append(buf, queuedComment...), nil
	}
	e.buf = buf
	if !e.begun {
		e.appendDelta(messageDelta{Role: "assistant", Content: new(string)}, nil)
	}
	if reasoning := reasoningOf(event); reasoning != "" {
		e.appendDelta(messageDelta{Reasoning: reasoning}, nil)
	}
	e.answer.follow(event)
	if e.answer.lost {
		return buf, core.Errorf(core.ErrModel, "the model's answer broke off after it had begun, and a new one begins; send the message again")
	}
	e.begun = true
	if !e.answer.ended {
		return e.buf, nil
	}
	if err := failureOf(e.answer.run); err != nil {
		return buf, err
	}
	e.appendDelta(messageDelta{}, new(e.answer.finishReason()))
	if e.usage {
		e.chunk.Usage, e.chunk.Choices = e.json.append(nil, usageOf(e.answer.run.Usage)), e.choice[:0]
		e.appendChunk()
	}
	return append(e.buf, "data: [DONE]\n\n"...), nil
}

// writePiece is for dialect.
func (e *chunkEncoder) writePiece(i int, begins bool, text string) {
	it := e.answer.items[i]
	if it.call == "" {
		if text != "" && it.sent == len(text) && e.any {
			text = textSeparator + text
		}
		if text != "" {
			e.appendDelta(messageDelta{Content: &text}, nil)
		}
		return
	}
	piece := callDelta{Index: e.calls, toolCall: toolCall{Function: functionCall{Arguments: text}}}
	for _, before := range e.answer.items[:i] {
		if before.call != "" {
			piece.Index++
		}
	}
	if begins {
		piece.ID, piece.Type, piece.Function.Name = it.CallID, "function", it.Name
	}
	e.appendDelta(messageDelta{ToolCalls: []callDelta{piece}}, nil)
}

// endItems is for dialect.
func (e *chunkEncoder) endItems() {
	for _, it := range e.answer.items {
		if it.call != "" {
			e.calls++
		} else if it.sent > 0 {
			e.any = true
		}
	}
}

// appendDelta appends a chunk with a piece of the message.
func (e *chunkEncoder) appendDelta(delta messageDelta, finish *string) {
	e.choice[0] = chunkChoice{Delta: delta, FinishReason: finish}
	e.chunk.Choices = e.choice[:]
	e.appendChunk()
}

func (e *chunkEncoder) appendChunk() {
	e.buf = append(e.json.append(append(e.buf, "data: "...), &e.chunk), "\n\n"...)
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
