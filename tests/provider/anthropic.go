package provider

import (
	"encoding/json"
	"fmt"
	"net/http"
)

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
