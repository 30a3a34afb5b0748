package adapters_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
	"bobbin/app/core/llm/openai"
	"bobbin/app/core/llm/providerhttp"
	"bobbin/app/core/llm/responses"
)

// settings are how a model is opened.
type settings struct {
	thinking int
	timeouts providerhttp.Timeouts
	baseURL  string // empty = the scripted provider
}

// dialect is an adapter and what its provider says on the wire.
type dialect struct {
	name     string
	cloud    cloud // zero = the provider itself
	model    string
	messages string // the member of a request that holds the messages
	open     func(http.RoundTripper, settings) (llm.Model, error)
	writer   func() writer
	failure  func(word, sentence string) string // the body of an error
	whole    func(text string) string           // an answer that is not streamed
	tooLong  string                             // how 9,000 tokens are refused where 8,192 fit
}

// writer writes an answer, piece by piece.
type writer interface {
	events(p piece) []string
}

// piece is a part of an answer in no dialect; one of its fields is set.
type piece struct {
	text      string
	thinking  string
	signature string // ends the thoughts
	redacted  string // thoughts that are not shown
	call      *callPiece
	failure   string // an error in the middle of the stream: its type
	ping      bool
	end       core.FinishReason
	usage     *core.Usage // with end
}

// callPiece begins a call (with a name) or goes on with its arguments.
type callPiece struct {
	index     int
	id, name  string
	arguments string
}

func text(s string) piece  { return piece{text: s} }
func think(s string) piece { return piece{thinking: s} }
func begin(index int, id, name string) piece {
	return piece{call: &callPiece{index: index, id: id, name: name}}
}
func args(index int, s string) piece                  { return piece{call: &callPiece{index: index, arguments: s}} }
func end(reason core.FinishReason) piece              { return piece{end: reason} }
func counted(r core.FinishReason, u core.Usage) piece { return piece{end: r, usage: &u} }

func dialects() []dialect { return append(ownDialects(), cloudDialects()...) }

// ownDialects are those of providers that serve their own models.
func ownDialects() []dialect {
	return []dialect{
		{
			name: "langchain", model: "test-model", messages: "messages",
			open: func(transport http.RoundTripper, with settings) (llm.Model, error) {
				return openai.New(openai.Options{
					Model: "test-model", BaseURL: or(with.baseURL, baseURL+"/v1"), APIKey: key, Transport: transport, Timeouts: with.timeouts,
					Info: llm.Info{MaxOutput: 8_192},
				})
			},
			writer:  func() writer { return openAI{} },
			failure: openAIFailure,
			whole: func(text string) string {
				return toJSON(map[string]any{"choices": []any{map[string]any{
					"message": map[string]any{"role": "assistant", "content": text}, "finish_reason": "stop",
				}}, "usage": map[string]any{"prompt_tokens": 10, "completion_tokens": 2}})
			},
			tooLong: openAITooLong,
		},
		{
			name: "anthropic", model: "claude-sonnet-4-5", messages: "messages",
			open: func(transport http.RoundTripper, with settings) (llm.Model, error) {
				return anthropic.New(anthropic.Options{
					Model: "claude-sonnet-4-5", BaseURL: or(with.baseURL, baseURL), APIKey: key, Transport: transport, Timeouts: with.timeouts,
					Info: llm.Info{MaxOutput: 8_192}, Thinking: with.thinking,
				})
			},
			writer: func() writer { return &claude{open: map[string]int{}} },
			failure: func(word, sentence string) string {
				return toJSON(map[string]any{"type": "error", "error": map[string]any{"type": word, "message": sentence}})
			},
			whole: func(text string) string {
				return toJSON(map[string]any{
					"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "text", "text": text}},
					"stop_reason": "end_turn", "usage": map[string]any{"input_tokens": 10, "output_tokens": 2},
				})
			},
			tooLong: "prompt is too long: 9000 tokens > 8192 maximum",
		},
		{
			name: "responses", model: "test-model", messages: "input",
			open: func(transport http.RoundTripper, with settings) (llm.Model, error) {
				return responses.New(responses.Options{
					Model: "test-model", BaseURL: or(with.baseURL, baseURL+"/v1"), APIKey: key, Transport: transport, Timeouts: with.timeouts,
					Info: llm.Info{MaxOutput: 8_192},
				})
			},
			writer:  func() writer { return &responsesWriter{open: map[string]*responsesItem{}} },
			failure: openAIFailure,
			whole: func(text string) string {
				return toJSON(map[string]any{
					"object": "response", "status": "completed", "usage": map[string]any{"input_tokens": 10, "output_tokens": 2},
					"output": []any{map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": text}}}},
				})
			},
			tooLong: openAITooLong,
		},
	}
}

const openAITooLong = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."

func openAIFailure(word, sentence string) string {
	return toJSON(map[string]any{"error": map[string]any{"message": sentence, "type": word}})
}

// openAI writes the OpenAI dialect.
type openAI struct{}

func (openAI) events(p piece) []string {
	delta := map[string]any{}
	switch {
	case p.text != "":
		delta["content"] = p.text
	case p.thinking != "":
		delta["reasoning_content"] = p.thinking
	case p.call != nil:
		call := map[string]any{"index": p.call.index, "function": map[string]any{"arguments": p.call.arguments}}
		if p.call.name != "" {
			call["id"], call["type"] = p.call.id, "function"
			call["function"] = map[string]any{"name": p.call.name, "arguments": ""}
		}
		delta["tool_calls"] = []any{call}
	case p.failure != "":
		return []string{data(map[string]any{"error": map[string]any{"message": "it failed", "type": p.failure}})}
	case p.ping:
		return []string{": ping\n\n"}
	case p.end != "":
		return openAIEnd(p)
	default: // signatures are not of this dialect
		return nil
	}
	return []string{data(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": nil}}})}
}

func openAIEnd(p piece) []string {
	out := []string{data(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": p.end}}})}
	if u := p.usage; u != nil {
		out = append(out, data(map[string]any{"choices": []any{}, "usage": map[string]any{
			"prompt_tokens": u.InputTokens, "completion_tokens": u.OutputTokens,
			"prompt_tokens_details":     map[string]any{"cached_tokens": u.CacheReadTokens, "cache_write_tokens": u.CacheWriteTokens},
			"completion_tokens_details": map[string]any{"reasoning_tokens": u.ReasoningTokens},
		}}))
	}
	return append(out, "data: [DONE]\n\n")
}

// claude writes Anthropic's dialect. Blocks of text and of thoughts end where
// another begins; tool calls are open until the end.
type claude struct {
	started bool
	next    int
	open    map[string]int // what is open, by its kind or call
	order   []string
}

func (c *claude) events(p piece) []string {
	if p.failure != "" {
		return []string{"event: error\n" + data(map[string]any{"type": "error", "error": map[string]any{"type": p.failure, "message": "it failed"}})}
	}
	if p.ping {
		return []string{"event: ping\n" + data(map[string]any{"type": "ping"})}
	}
	var out []string
	if !c.started {
		c.started = true
		out = append(out, named("message_start", map[string]any{"message": map[string]any{
			"id": "msg_1", "type": "message", "role": "assistant", "content": []any{}, "stop_reason": nil, "usage": c.before(p.usage),
		}}))
	}
	switch {
	case p.text != "":
		out = append(out, c.begin("text", map[string]any{"type": "text", "text": ""})...)
		return append(out, c.delta("text", map[string]any{"type": "text_delta", "text": p.text}))
	case p.thinking != "":
		out = append(out, c.begin("thinking", map[string]any{"type": "thinking", "thinking": "", "signature": ""})...)
		return append(out, c.delta("thinking", map[string]any{"type": "thinking_delta", "thinking": p.thinking}))
	case p.signature != "":
		return append(append(out, c.delta("thinking", map[string]any{"type": "signature_delta", "signature": p.signature})), c.close("thinking")...)
	case p.redacted != "":
		out = append(out, c.begin("redacted", map[string]any{"type": "redacted_thinking", "data": p.redacted})...)
		return append(out, c.close("redacted")...)
	case p.call != nil:
		return append(out, c.call(*p.call)...)
	case p.end != "":
		return append(out, c.end(p)...)
	}
	return out
}

func (c *claude) call(p callPiece) []string {
	name := fmt.Sprint("call ", p.index)
	if p.name != "" {
		return c.begin(name, map[string]any{"type": "tool_use", "id": p.id, "name": p.name, "input": map[string]any{}})
	}
	return []string{c.delta(name, map[string]any{"type": "input_json_delta", "partial_json": p.arguments})}
}

// begin opens a block, unless it is open.
func (c *claude) begin(name string, block map[string]any) []string {
	if _, ok := c.open[name]; ok {
		return nil
	}
	out := append(c.close("text"), c.close("thinking")...)
	c.open[name], c.order = c.next, append(c.order, name)
	c.next++
	return append(out, named("content_block_start", map[string]any{"index": c.open[name], "content_block": block}))
}

func (c *claude) delta(name string, delta map[string]any) string {
	return named("content_block_delta", map[string]any{"index": c.open[name], "delta": delta})
}

func (c *claude) close(name string) []string {
	index, ok := c.open[name]
	if !ok {
		return nil
	}
	delete(c.open, name)
	return []string{named("content_block_stop", map[string]any{"index": index})}
}

func (c *claude) end(p piece) []string {
	var out []string
	for _, name := range c.order {
		out = append(out, c.close(name)...)
	}
	word := map[core.FinishReason]string{
		core.FinishStop: "end_turn", core.FinishLength: "max_tokens", core.FinishToolCalls: "tool_use", core.FinishContentFilter: "refusal",
	}[p.end]
	usage := map[string]any{}
	if p.usage != nil {
		usage = c.before(p.usage)
		usage["output_tokens"] = p.usage.OutputTokens
		usage["output_tokens_details"] = map[string]any{"thinking_tokens": p.usage.ReasoningTokens}
	}
	return append(out,
		named("message_delta", map[string]any{"delta": map[string]any{"stop_reason": word, "stop_sequence": nil}, "usage": usage}),
		named("message_stop", nil))
}

// before is the usage of the prompt: Anthropic counts what is cached apart.
func (c *claude) before(u *core.Usage) map[string]any {
	if u == nil {
		return map[string]any{}
	}
	return map[string]any{
		"input_tokens":            u.InputTokens - u.CacheReadTokens - u.CacheWriteTokens,
		"cache_read_input_tokens": u.CacheReadTokens, "cache_creation_input_tokens": u.CacheWriteTokens,
	}
}

func named(kind string, members map[string]any) string {
	event := map[string]any{"type": kind}
	for k, v := range members {
		event[k] = v
	}
	return "event: " + kind + "\n" + data(event)
}

func data(event map[string]any) string { return "data: " + toJSON(event) + "\n\n" }

func toJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(raw))
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

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
