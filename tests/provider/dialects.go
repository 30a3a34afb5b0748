package provider

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// openAI is the dialect of OpenAI's chat completions.
type openAI struct{}

type openAIRequest struct {
	Messages            []openAIMessage `json:"messages"`
	Tools               json.RawMessage `json:"tools"`
	ToolChoice          any             `json:"tool_choice"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	ResponseFormat      json.RawMessage `json:"response_format"`
}

type openAIMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls,omitempty"`
}

func (openAI) take(body []byte) (Received, error) {
	var req openAIRequest
	var raw struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return Received{}, err
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return Received{}, err
	}
	out := Received{Body: body, RawTools: req.Tools, MaxOutput: max(req.MaxTokens, req.MaxCompletionTokens), Format: req.ResponseFormat}
	if choice, ok := req.ToolChoice.(string); ok {
		out.ToolChoice = choice
	}
	for i, m := range req.Messages {
		text, images, files := m.content()
		if m.Role == "system" {
			out.System = append(out.System, text)
			continue
		}
		out.Messages = append(out.Messages, Message{
			Role: m.Role, Text: text, Images: images, Files: files, Calls: m.calls(), RawCalls: m.ToolCalls, Raw: raw.Messages[i],
		})
	}
	var tools []struct {
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	}
	if len(req.Tools) > 0 {
		if err := json.Unmarshal(req.Tools, &tools); err != nil {
			return Received{}, err
		}
	}
	for _, t := range tools {
		out.Tools = append(out.Tools, Tool(t.Function))
	}
	return out, nil
}

// content returns the message's text, whatever form its content has, and the addresses
// of its images and its files.
func (m openAIMessage) content() (text string, images []string, files []File) {
	if json.Unmarshal(m.Content, &text) == nil {
		return text, nil, nil
	}
	var parts []struct {
		Text     string `json:"text"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
		File *struct {
			Name string `json:"filename"`
			Data string `json:"file_data"`
		} `json:"file"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return string(m.Content), nil, nil
	}
	for _, p := range parts {
		text += p.Text
		if p.ImageURL.URL != "" {
			images = append(images, p.ImageURL.URL)
		}
		if p.File != nil {
			files = append(files, File(*p.File))
		}
	}
	return text, images, files
}

func (m openAIMessage) calls() []Call {
	var list []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	if len(m.ToolCalls) == 0 || json.Unmarshal(m.ToolCalls, &list) != nil {
		return nil
	}
	calls := make([]Call, 0, len(list))
	for _, c := range list {
		calls = append(calls, Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
	}
	return calls
}

func (openAI) refuse(w http.ResponseWriter, limit, prompt, output int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"error":{"message":"This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages, %d in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
		limit, prompt+output, prompt, output)
}

func (openAI) answer(w http.ResponseWriter, prompt int, _ cached) answer {
	return &openAIStream{w: w, prompt: prompt}
}

// openAIStream writes chunks as the OpenAI API does.
type openAIStream struct {
	w      http.ResponseWriter
	prompt int
	began  bool
	finish string
	output int
	calls  int // so far
}

func (s *openAIStream) chunk(delta string, finish string) {
	if !s.began {
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.began = true
	}
	f := "null"
	if finish != "" {
		f = `"` + finish + `"`
	}
	fmt.Fprintf(s.w, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, f)
}

func (s *openAIStream) text(text string) {
	s.finish = "stop"
	s.output += len(text) / 4
	s.chunk(`{"content":`+quoted(text)+`}`, "")
}

func (s *openAIStream) toolCall(id, name, args string) {
	s.finish = "tool_calls"
	s.output += 20
	s.chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`, s.calls, id, name), "")
	for piece := range pieces(args, callPieces) {
		s.chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, s.calls, quoted(piece)), "")
	}
	s.calls++
}

func (s *openAIStream) end() {
	s.chunk("{}", s.finish)
	fmt.Fprintf(s.w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\ndata: [DONE]\n\n",
		s.prompt, s.output, s.prompt+s.output)
}

// quoted returns the text as JSON.
func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil { // a string can always be written
		return `""`
	}
	return string(raw)
}

// anthropic is the dialect of Anthropic's messages.
type anthropic struct{}

// block is a block of content. Blocks of the system and of messages have the same
// form.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Title   string          `json:"title"`
	Input   json.RawMessage `json:"input"`
	Content json.RawMessage `json:"content"` // of a tool's result
	Source  struct {
		Data string `json:"data"`
	} `json:"source"`
}

type anthropicRequest struct {
	System   []block `json:"system"`
	Messages []struct {
		Role    string            `json:"role"`
		Content []json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	ToolChoice struct {
		Type string `json:"type"`
	} `json:"tool_choice"`
	MaxTokens int `json:"max_tokens"`
}

// take takes a request apart: the results of tools are messages of their own, as the
// other dialect has them.
func (anthropic) take(body []byte) (Received, error) {
	var req anthropicRequest
	var raw struct {
		Tools json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return Received{}, err
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return Received{}, err
	}
	out := Received{Body: body, RawTools: raw.Tools, ToolChoice: req.ToolChoice.Type, MaxOutput: req.MaxTokens}
	for _, b := range req.System {
		out.System = append(out.System, b.Text)
	}
	for _, t := range req.Tools {
		out.Tools = append(out.Tools, Tool{Name: t.Name, Description: t.Description, Parameters: t.InputSchema})
	}
	for _, m := range req.Messages {
		if err := out.addBlocks(m.Role, m.Content); err != nil {
			return Received{}, err
		}
	}
	return out, nil
}

// addBlocks appends the messages that the blocks of one message are: a result of a
// tool is one, what lies between them too.
func (r *Received) addBlocks(role string, content []json.RawMessage) error {
	open := false // the last message goes on
	for _, raw := range content {
		var b block
		if err := json.Unmarshal(raw, &b); err != nil {
			return err
		}
		if b.Type == "tool_result" {
			r.Messages = append(r.Messages, Message{Role: "tool", Text: textOf(b.Content), Raw: raw})
			open = false
			continue
		}
		if !open || b.Type == "text" && role == "user" {
			r.Messages = append(r.Messages, Message{Role: role, Raw: raw})
			open = true
		}
		m := &r.Messages[len(r.Messages)-1]
		m.Text += b.Text
		switch b.Type {
		case "tool_addition", "tool_removal": // counted as they are
			m.RawCalls = append(m.RawCalls, raw...)
		case "tool_use":
			m.Calls = append(m.Calls, Call{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
			m.RawCalls = append(m.RawCalls, raw...)
		case "image":
			m.Images = append(m.Images, b.Source.Data)
		case "document":
			m.Files = append(m.Files, File{b.Title, b.Source.Data})
		}
	}
	return nil
}

// textOf returns the text of content that is a string or a list of blocks.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []block
	if json.Unmarshal(content, &blocks) != nil {
		return ""
	}
	for _, b := range blocks {
		text += b.Text
	}
	return text
}

func (anthropic) refuse(w http.ResponseWriter, limit, prompt, output int) {
	message := fmt.Sprintf("prompt is too long: %d tokens > %d maximum", prompt, limit)
	if prompt <= limit {
		message = fmt.Sprintf("input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or `max_tokens` and try again", prompt, output, limit)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","message":%s}}`, quoted(message))
}

func (anthropic) answer(w http.ResponseWriter, prompt int, c cached) answer {
	return &anthropicStream{w: w, prompt: prompt, cached: c}
}

// anthropicStream writes events as the Anthropic API does.
type anthropicStream struct {
	w      http.ResponseWriter
	prompt int
	cached cached
	began  bool
	open   bool // a text is on its way
	blocks int
	stop   string
	output int
}

func (s *anthropicStream) event(name, data string) {
	if !s.began {
		s.began = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.event("message_start", fmt.Sprintf(
			`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d,"output_tokens":1}}}`,
			s.prompt-s.cached.read-s.cached.write, s.cached.read, s.cached.write))
	}
	fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", name, data)
}

func (s *anthropicStream) text(text string) {
	if !s.open {
		s.open = true
		s.event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":""}}`, s.blocks))
	}
	s.stop = "end_turn"
	s.output += len(text) / 4
	s.event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"text_delta","text":%s}}`, s.blocks, quoted(text)))
}

func (s *anthropicStream) toolCall(id, name, args string) {
	s.close()
	s.stop = "tool_use"
	s.output += 20
	s.event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}}`, s.blocks, id, name))
	for piece := range pieces(args, callPieces) {
		s.event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%s}}`, s.blocks, quoted(piece)))
	}
	s.open = true
	s.close()
}

func (s *anthropicStream) close() {
	if s.open {
		s.event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, s.blocks))
		s.open = false
		s.blocks++
	}
}

func (s *anthropicStream) end() {
	s.close()
	s.event("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":%d}}`, s.stop, s.output))
	s.event("message_stop", `{"type":"message_stop"}`)
}
