package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// serveMessages checks the history of a request of Anthropic's Messages API, and answers it.
func (s *Server) serveMessages(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller went away
	}
	betas := strings.FieldsFunc(strings.Join(r.Header.Values("Anthropic-Beta"), ","), func(r rune) bool { return r == ',' || r == ' ' })
	c, refused := s.strict.checkMessages(body, betas)
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

// responsesOutput is what a request of the Responses API says about its answer.
type responsesOutput struct {
	Tools []json.RawMessage `json:"tools"`
	Text  struct {
		Format struct {
			Type string `json:"type"`
		} `json:"format"`
	} `json:"text"`
	Reasoning struct {
		Summary string `json:"summary"`
	} `json:"reasoning"`
}

// output returns the items that the request is answered by.
func (r *Responses) output(req responsesOutput) []any {
	var last responsesMessage
	for _, raw := range slices.Backward(r.Items) {
		last = responsesMessage{}
		_ = json.Unmarshal(raw, &last) // other items are no messages
		if last.Role != "developer" {
			break
		}
	}
	id := digest(r.prefix.last()...)[:24]
	out := []any{r.reasoning(req)}
	if asked := (Received{Messages: []Message{{Role: last.Role}}}).callsTool(Asked{Question: last.text()}); asked && len(r.offered) > 0 {
		name := namedTool(r.offered, last.text(), r.offered[0].Name)
		if strings.Contains(last.text(), "steps") {
			comment := message("msg_"+id, "commentary", "I use "+name+".")
			r.addOutput(comment)
			out = append(out, comment, r.reasoning(req))
		}
		return append(out, map[string]any{
			"id": "fc_" + id, "type": "function_call", "call_id": "call_" + id, "name": name, "arguments": `{"expression": "6 * 7"}`, "status": "completed",
		})
	}
	text := "answer to: " + last.text() + textOf(last.Output)
	if kind := req.Text.Format.Type; kind == "json_schema" || kind == "json_object" {
		text = `{"answer":` + quoted(text) + `}`
	}
	return append(out, message("msg_"+id, "final_answer", text))
}

// reasoning returns a new reasoning item, with a summary if the request asks for one, and adds it to the prefix
// of what follows.
func (r *Responses) reasoning(req responsesOutput) map[string]any {
	id, summary := "rs_"+digest(r.prefix.last()...)[:24], []any{}
	sealed := r.strict.sign(seal{Account: r.strict.Account, Model: r.model, ID: id, Prefix: r.prefix.last()})
	r.prefix = r.prefix.add(id)
	if req.Reasoning.Summary != "" {
		summary = []any{
			map[string]any{"type": "summary_text", "text": fmt.Sprintf("There are %d items.", len(r.Items))},
			map[string]any{"type": "summary_text", "text": "The last one counts."},
		}
	}
	return map[string]any{"id": id, "type": "reasoning", "summary": summary, "encrypted_content": sealed}
}

// addOutput adds an item of the answer to the prefix of what follows it.
func (r *Responses) addOutput(item map[string]any) {
	raw, err := json.Marshal(item)
	if err != nil { // nothing in it can fail
		return
	}
	r.prefix = r.prefix.add(r.strict.canonical(withoutID(raw)))
}

// message returns an output message.
func message(id, phase, text string) map[string]any {
	return map[string]any{
		"id": id, "type": "message", "role": "assistant", "status": "completed", "phase": phase,
		"content": []any{map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}},
	}
}

// responsesEvents sends the events of a streamed response.
type responsesEvents struct {
	w http.ResponseWriter
	n int // so far
}

func (s *responsesEvents) send(name string, event map[string]any) {
	event["type"], event["sequence_number"] = name, s.n
	s.n++
	raw, err := json.Marshal(event)
	if err != nil { // nothing in it can fail
		return
	}
	fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", name, raw)
	flush(s.w)
}

// streamResponse sends a response as events: texts, summaries and arguments in two pieces.
func streamResponse(w http.ResponseWriter, response map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream")
	s := &responsesEvents{w: w}
	begun := maps.Clone(response)
	begun["status"], begun["output"], begun["usage"] = "in_progress", []any{}, nil
	s.send("response.created", map[string]any{"response": begun})
	for i, it := range response["output"].([]any) { //nolint:forcetypeassert // create writes it
		s.sendItem(i, it.(map[string]any)) //nolint:forcetypeassert // output writes it
	}
	s.send("response.completed", map[string]any{"response": response})
}

// sendItem sends an item: its beginning without the content, the content, and the whole.
func (s *responsesEvents) sendItem(i int, item map[string]any) {
	begun := maps.Clone(item)
	switch item["type"] {
	case "message":
		begun["content"], begun["status"] = []any{}, "in_progress"
	case "function_call":
		begun["arguments"], begun["status"] = "", "in_progress"
	case "reasoning":
		begun["summary"] = []any{}
	}
	s.send("response.output_item.added", map[string]any{"output_index": i, "item": begun})
	at := map[string]any{"output_index": i, "item_id": item["id"]}
	switch item["type"] {
	case "message":
		part := item["content"].([]any)[0].(map[string]any) //nolint:forcetypeassert // message writes it
		at["content_index"], at["logprobs"] = 0, []any{}
		s.sendText("response.output_text", "text", at, part["text"])
	case "function_call":
		named := maps.Clone(at)
		named["name"] = item["name"]
		s.sendText("response.function_call_arguments", "arguments", named, item["arguments"])
	case "reasoning":
		for n, part := range item["summary"].([]any) { //nolint:forcetypeassert // reasoning writes it
			at["summary_index"] = n
			s.sendPart("response.reasoning_summary_part.added", at, map[string]any{"type": "summary_text", "text": ""})
			s.sendText("response.reasoning_summary_text", "text", at, part.(map[string]any)["text"]) //nolint:forcetypeassert // reasoning writes it
			s.sendPart("response.reasoning_summary_part.done", at, part)
		}
	}
	s.send("response.output_item.done", map[string]any{"output_index": i, "item": item})
}

// sendText sends a text in two pieces, and the whole.
func (s *responsesEvents) sendText(name, member string, at map[string]any, text any) {
	for piece := range pieces(fmt.Sprint(text), 2) {
		delta := maps.Clone(at)
		delta["delta"] = piece
		s.send(name+".delta", delta)
	}
	whole := maps.Clone(at)
	whole[member] = text
	s.send(name+".done", whole)
}

func (s *responsesEvents) sendPart(name string, at map[string]any, part any) {
	event := maps.Clone(at)
	event["part"] = part
	s.send(name, event)
}
