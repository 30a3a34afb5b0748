package adapters_test

import (
	"fmt"

	"bobbin/app/core"
)

// responsesWriter writes the events of OpenAI's Responses API. A text and reasoning end where
// another item begins; tool calls are open until the end.
type responsesWriter struct {
	items []*responsesItem
	open  map[string]*responsesItem // by kind, or call
}

// responsesItem is an item of the output on its way.
type responsesItem struct {
	index int
	item  map[string]any
	text  string // of a message, a summary or arguments, so far
}

func (w *responsesWriter) events(p piece) []string {
	switch {
	case p.failure != "":
		return []string{named("error", map[string]any{"code": p.failure, "message": "it failed", "param": nil})}
	case p.ping:
		return []string{named("keepalive", nil)}
	case p.text != "":
		out := w.begin("message", map[string]any{"type": "message", "role": "assistant"})
		return append(out, w.delta("message", "response.output_text.delta", p.text))
	case p.thinking != "":
		out := w.begin("reasoning", map[string]any{"type": "reasoning"})
		return append(out, w.delta("reasoning", "response.reasoning_summary_text.delta", p.thinking))
	case p.signature != "":
		w.open["reasoning"].item["encrypted_content"] = p.signature
		return w.end("reasoning")
	case p.redacted != "":
		out := w.begin("reasoning", map[string]any{"type": "reasoning", "encrypted_content": p.redacted})
		return append(out, w.end("reasoning")...)
	case p.call != nil:
		name := fmt.Sprint("call ", p.call.index)
		if p.call.name != "" {
			return w.begin(name, map[string]any{"type": "function_call", "call_id": p.call.id, "name": p.call.name})
		}
		return []string{w.delta(name, "response.function_call_arguments.delta", p.call.arguments)}
	default:
		return w.ended(p)
	}
}

// begin begins an item, unless it is open.
func (w *responsesWriter) begin(name string, item map[string]any) []string {
	if w.open[name] != nil {
		return nil
	}
	out := append(w.end("message"), w.end("reasoning")...)
	n := len(w.items)
	item["id"] = fmt.Sprint("item_", n)
	i := &responsesItem{index: n, item: item}
	w.items, w.open[name] = append(w.items, i), i
	return append(out, named("response.output_item.added", map[string]any{"output_index": n, "item": i.content("in_progress")}))
}

func (w *responsesWriter) delta(name, event, text string) string {
	i := w.open[name]
	i.text += text
	return named(event, map[string]any{"output_index": i.index, "item_id": i.item["id"], "delta": text})
}

func (w *responsesWriter) end(name string) []string {
	i := w.open[name]
	if i == nil {
		return nil
	}
	delete(w.open, name)
	return []string{named("response.output_item.done", map[string]any{"output_index": i.index, "item": i.content("completed")})}
}

// content returns the item with what was said of it so far.
func (i *responsesItem) content(status string) map[string]any {
	out := map[string]any{"status": status}
	for k, v := range i.item {
		out[k] = v
	}
	switch out["type"] {
	case "message":
		out["content"] = []any{map[string]any{"type": "output_text", "text": i.text, "annotations": []any{}}}
	case "function_call":
		out["arguments"] = i.text
	case "reasoning":
		out["summary"] = []any{}
		if i.text != "" {
			out["summary"] = []any{map[string]any{"type": "summary_text", "text": i.text}}
		}
	}
	return out
}

// ended ends the answer.
func (w *responsesWriter) ended(p piece) []string {
	var out []string
	output := []any{}
	for _, i := range w.items {
		for name, open := range w.open {
			if open == i {
				out = append(out, w.end(name)...)
			}
		}
		output = append(output, i.content("completed"))
	}
	kind, response := "response.completed", map[string]any{"object": "response", "status": "completed", "output": output}
	if reason := map[core.FinishReason]string{core.FinishLength: "max_output_tokens", core.FinishContentFilter: "content_filter"}[p.end]; reason != "" {
		kind, response["status"], response["incomplete_details"] = "response.incomplete", "incomplete", map[string]any{"reason": reason}
	}
	if u := p.usage; u != nil {
		response["usage"] = map[string]any{
			"input_tokens": u.InputTokens, "output_tokens": u.OutputTokens,
			"input_tokens_details":  map[string]any{"cached_tokens": u.CacheReadTokens, "cache_write_tokens": u.CacheWriteTokens},
			"output_tokens_details": map[string]any{"reasoning_tokens": u.ReasoningTokens},
		}
	}
	return append(out, named(kind, map[string]any{"response": response}))
}
