package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

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
