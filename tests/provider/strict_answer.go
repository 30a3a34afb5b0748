package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// serveMessages checks the history of a request of Anthropic's Messages API, and answers it.
func (s *Server) serveMessages(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller went away
	}
	c, refused := s.strict.checkMessages(body, betasOf(r.Header))
	if refused != nil {
		s.requests.Add(1)
		s.strict.add(Thoughts{Refused: 1})
		s.keepRefused(body)
		refused.write(w)
		return
	}
	s.strict.add(c.thoughts())
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.serve(w, r, strictAnthropic{conversation: c})
}

// keepRefused records a request that was refused.
func (s *Server) keepRefused(body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.Record {
		s.received = append(s.received, Received{Body: body, Thoughts: Thoughts{Refused: 1}})
	}
}

// strictAnthropic is the dialect of one request whose history was checked.
type strictAnthropic struct {
	anthropic

	conversation *conversation
}

func (d strictAnthropic) take(body []byte) (Received, error) {
	// Each content is a list of blocks, and a compaction is a text.
	var req map[string]json.RawMessage
	if err := json.Unmarshal(body, &req); err != nil {
		return Received{}, err
	}
	messages := make([]map[string]any, 0, len(d.conversation.req.Messages))
	for i, m := range d.conversation.req.Messages {
		content := append(blocks{}, m.Content...)
		if i == 0 && d.conversation.compacted != "" {
			content[0] = json.RawMessage(`{"text":` + quoted(d.conversation.compacted) + `,"type":"text"}`)
		}
		messages = append(messages, map[string]any{"role": m.Role, "content": content})
	}
	var err error
	if req["messages"], err = json.Marshal(messages); err != nil {
		return Received{}, err
	}
	if raw, ok := req["system"]; ok {
		var system blocks
		if err := system.UnmarshalJSON(raw); err != nil {
			return Received{}, err
		}
		if req["system"], err = json.Marshal(system); err != nil {
			return Received{}, err
		}
	}
	plain, err := json.Marshal(req)
	if err != nil {
		return Received{}, err
	}
	r, err := d.anthropic.take(plain)
	r.Thoughts, r.Transformations = d.conversation.thoughts(), d.conversation.transformations
	r.Compaction = d.conversation.req.Compaction != nil
	r.Offered = d.conversation.offered
	return r, err
}

func (d strictAnthropic) answer(w http.ResponseWriter, prompt int, c cached) answer {
	a := &strictAnswer{anthropicStream: anthropicStream{w: w, prompt: prompt, cached: c}, conversation: d.conversation}
	if d.conversation.req.Compaction != nil {
		return &compactionAnswer{strictAnswer: a}
	}
	return a
}

// strictAnswer is an answer with thoughts. It is a stream, whatever is asked for: Bobbin asks for nothing else.
type strictAnswer struct {
	anthropicStream

	conversation *conversation
	thought      bool
}

func (a *strictAnswer) text(text string) {
	a.think()
	a.anthropicStream.text(text)
}

func (a *strictAnswer) toolCall(id, name, args string) {
	a.think()
	a.anthropicStream.toolCall(id, name, args)
}

// think writes the thoughts, before anything else.
func (a *strictAnswer) think() {
	if a.thought {
		return
	}
	a.thought = true
	a.start()
	c := a.conversation
	if !c.thinks() {
		return
	}
	text := "" // the default of models that decide how much they think
	if c.req.Thinking.Display == "summarized" || c.req.Thinking.Type == "enabled" && c.req.Thinking.Display == "" {
		text = fmt.Sprintf("There are %d messages.", len(c.req.Messages))
	}
	id := digest(c.prefix.last()[0], c.before)
	a.block(map[string]any{"type": "thinking", "thinking": text, "signature": c.v.sign(c.newThought(id, c.before, text))})
	if c.v.Redacted {
		a.block(map[string]any{"type": "redacted_thinking", "data": c.v.sign(c.newThought(digest(id), id, ""))})
	}
}

// start sends the beginning of the stream.
func (a *strictAnswer) start() {
	a.w.Header().Set("Content-Type", "text/event-stream")
	a.began = true
	c := a.conversation
	m := map[string]any{
		"id": "msg_" + digest(c.prefix...)[:12], "type": "message", "role": "assistant", "model": c.req.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": a.usage(),
	}
	if c.has(betaBinding) { // only then the changes are reported, also if there are none
		m["input_transformations"] = append([]Transformation{}, c.transformations...)
	}
	a.send("message_start", map[string]any{"message": m})
}

// send sends an event with its type.
func (a *strictAnswer) send(name string, event map[string]any) {
	event["type"] = name
	raw, err := json.Marshal(event)
	if err != nil { // nothing in it can fail
		return
	}
	a.event(name, string(raw))
}

// block writes a block that is not a text: a thought in deltas, others at once.
func (a *strictAnswer) block(b map[string]any) {
	first := b
	if b["type"] == "thinking" {
		first = map[string]any{"type": "thinking", "thinking": "", "signature": ""}
	}
	a.send("content_block_start", map[string]any{"index": a.blocks, "content_block": first})
	if b["type"] == "thinking" {
		if b["thinking"] != "" {
			a.send("content_block_delta", map[string]any{"index": a.blocks, "delta": map[string]any{"type": "thinking_delta", "thinking": b["thinking"]}})
		}
		a.send("content_block_delta", map[string]any{"index": a.blocks, "delta": map[string]any{"type": "signature_delta", "signature": b["signature"]}})
	}
	a.send("content_block_stop", map[string]any{"index": a.blocks})
	a.blocks++
}

// usage returns the usage of an answer or of a compaction. That of a compaction is only among the
// iterations: the fields above count the answer.
func (a *strictAnswer) usage() map[string]any {
	tokens := map[string]any{
		"input_tokens": a.prompt - a.cached.read - a.cached.write, "output_tokens": max(a.output, 1),
		"cache_read_input_tokens": a.cached.read, "cache_creation_input_tokens": a.cached.write,
		"cache_creation": map[string]any{"ephemeral_5m_input_tokens": a.cached.write, "ephemeral_1h_input_tokens": 0},
	}
	compacts := a.conversation.req.Compaction != nil
	one := map[string]any{"type": "compaction"}
	if !compacts {
		one = map[string]any{"type": "message", "model": a.conversation.req.Model}
	}
	out := map[string]any{"iterations": []any{one}}
	for name, value := range tokens {
		one[name], out[name] = value, value
		if _, isCount := value.(int); isCount && compacts {
			out[name] = 0
		}
	}
	return out
}

func (a *strictAnswer) end() {
	a.think()
	a.finish()
}

// finish ends the answer.
func (a *strictAnswer) finish() {
	a.close()
	a.send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": a.stop, "stop_sequence": nil}, "usage": a.usage()})
	a.send("message_stop", map[string]any{})
}

// compactionAnswer is a compaction: one block without thoughts.
type compactionAnswer struct {
	*strictAnswer

	summary string
}

func (a *compactionAnswer) text(text string)      { a.summary += text }
func (*compactionAnswer) toolCall(_, _, _ string) {}
func (a *compactionAnswer) end() {
	a.stop, a.output = "compaction", len(a.summary)/4
	a.start()
	a.block(a.conversation.compaction(a.summary))
	a.finish()
}
