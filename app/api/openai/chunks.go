package openai

import (
	"bytes"
	"encoding/json"

	"bobbin/app/core"
)

// chunkEncoder writes an answer as chunks of a chat completion.
type chunkEncoder struct {
	answer answer
	usage  bool   // the client asks for it
	head   []byte // of each chunk, up to the delta
	begun  bool   // the first chunk is written
	quote  *quoter
}

// quoter writes texts as JSON, without an allocation for each.
type quoter struct {
	buf bytes.Buffer
	enc *json.Encoder // into buf
}

func newQuoter() *quoter {
	q := &quoter{}
	q.enc = json.NewEncoder(&q.buf)
	q.enc.SetEscapeHTML(false)
	return q
}

// append appends the text as JSON.
func (q *quoter) append(buf []byte, text string) []byte {
	q.buf.Reset()
	_ = q.enc.Encode(text) // a string cannot fail
	return append(buf, bytes.TrimSuffix(q.buf.Bytes(), []byte("\n"))...)
}

func newChunkEncoder(run core.Run, body completionRequest, created int64) *chunkEncoder {
	e := &chunkEncoder{usage: body.StreamOptions.IncludeUsage, quote: newQuoter()}
	head, err := json.Marshal(struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		Model   string `json:"model"`
	}{completionID(run.ID), "chat.completion.chunk", created, body.Model})
	if err != nil {
		panic("openai: the head of a chunk is not JSON: " + err.Error()) // it has strings and a number
	}
	e.head = append([]byte("data: "), head[:len(head)-1]...)
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
		buf = e.appendChunk(buf, `{"role":"assistant","content":""}`, "")
	}
	if p.reasoning != "" {
		buf = e.appendText(buf, "reasoning_content", p.reasoning)
	}
	if p.text != "" {
		buf = e.appendText(buf, "content", p.text)
	}
	if len(p.calls) > 0 {
		raw, err := core.EncodeJSON(p.calls)
		if err != nil {
			return buf, err
		}
		buf = e.appendChunk(buf, `{"tool_calls":`+string(raw)+`}`, "")
	}
	if !p.end {
		return buf, nil
	}
	buf = e.appendChunk(buf, "{}", e.answer.finishReason())
	if e.usage {
		raw, err := json.Marshal(usageOf(e.answer.usage))
		if err != nil {
			return buf, err
		}
		buf = append(append(buf, e.head...), `,"choices":[],"usage":`...)
		buf = append(append(buf, raw...), "}\n\n"...)
	}
	return append(buf, "data: [DONE]\n\n"...), nil
}

// appendText appends a chunk with a piece of text.
func (e *chunkEncoder) appendText(buf []byte, field, text string) []byte {
	buf = e.appendHead(buf)
	buf = append(buf, `{"`...)
	buf = append(buf, field...)
	buf = append(buf, `":`...)
	return e.appendTail(append(e.quote.append(buf, text), '}'), "")
}

// appendChunk appends a chunk; an empty reason is none.
func (e *chunkEncoder) appendChunk(buf []byte, delta, reason string) []byte {
	return e.appendTail(append(e.appendHead(buf), delta...), reason)
}

func (e *chunkEncoder) appendHead(buf []byte) []byte {
	buf = append(buf, e.head...)
	return append(buf, `,"choices":[{"index":0,"delta":`...)
}

func (e *chunkEncoder) appendTail(buf []byte, reason string) []byte {
	buf = append(buf, `,"finish_reason":`...)
	if reason == "" {
		buf = append(buf, "null"...)
	} else {
		buf = append(append(append(buf, '"'), reason...), '"')
	}
	buf = append(buf, "}]"...)
	if e.usage {
		buf = append(buf, `,"usage":null`...)
	}
	return append(buf, "}\n\n"...)
}

// callDelta is a piece of a call of a tool in a chunk. The first one of a call has its id and name.
type callDelta struct {
	Index int `json:"index"`
	toolCall
}
