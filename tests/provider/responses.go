package provider

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// responsesAPI is the dialect of OpenAI's Responses API. It refuses and caches as chat
// completions do.
type responsesAPI struct {
	openAI

	reasoning int // bytes of the encrypted reasoning of an answer
}

type responsesRequest struct {
	Instructions    string            `json:"instructions"`
	Input           []json.RawMessage `json:"input"`
	Tools           json.RawMessage   `json:"tools"`
	ToolChoice      any               `json:"tool_choice"`
	MaxOutputTokens int               `json:"max_output_tokens"`
	Store           *bool             `json:"store"`
	Text            struct {
		Format json.RawMessage `json:"format"`
	} `json:"text"`
}

// responsesItem is an item of the input.
type responsesItem struct {
	Type    string `json:"type"`
	Role    string `json:"role"`
	Content []struct {
		Text     string `json:"text"`
		ImageURL string `json:"image_url"`
		Name     string `json:"filename"`
		Data     string `json:"file_data"`
	} `json:"content"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Output    string `json:"output"`
	Encrypted string `json:"encrypted_content"`
}

// take takes a request apart: a text and the tool calls after it are one message, as chat
// completions have them.
func (responsesAPI) take(body []byte) (Received, error) {
	var req responsesRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return Received{}, err
	}
	if req.Store == nil || *req.Store {
		return Received{}, fmt.Errorf("the conversation would be stored")
	}
	out := Received{Body: body, RawTools: req.Tools, MaxOutput: req.MaxOutputTokens, Format: req.Text.Format}
	if req.Instructions != "" {
		out.System = []string{req.Instructions}
	}
	if choice, ok := req.ToolChoice.(string); ok {
		out.ToolChoice = choice
	}
	if len(req.Tools) > 0 {
		if err := json.Unmarshal(req.Tools, &out.Tools); err != nil {
			return Received{}, err
		}
	}
	for _, raw := range req.Input {
		if err := out.addItem(raw); err != nil {
			return Received{}, err
		}
	}
	return out, nil
}

// addItem appends an item of the input to the messages.
func (r *Received) addItem(raw json.RawMessage) error {
	var item responsesItem
	if err := json.Unmarshal(raw, &item); err != nil {
		return err
	}
	switch item.Type {
	case "reasoning":
		r.Reasoning = append(r.Reasoning, item.Encrypted)
	case "function_call":
		if n := len(r.Messages); n == 0 || r.Messages[n-1].Role != "assistant" {
			r.Messages = append(r.Messages, Message{Role: "assistant", Raw: raw})
		}
		m := &r.Messages[len(r.Messages)-1]
		m.Calls = append(m.Calls, Call{ID: item.CallID, Name: item.Name, Arguments: item.Arguments})
		m.RawCalls = append(m.RawCalls, raw...)
	case "function_call_output":
		r.Messages = append(r.Messages, Message{Role: "tool", Text: item.Output, Raw: raw})
	default:
		m := Message{Role: item.Role, Raw: raw}
		for _, part := range item.Content {
			m.Text += part.Text
			if part.ImageURL != "" {
				m.Images = append(m.Images, part.ImageURL)
			}
			if part.Data != "" {
				m.Files = append(m.Files, File{part.Name, part.Data})
			}
		}
		r.Messages = append(r.Messages, m)
	}
	return nil
}

// piecesOf returns the tools, the instructions, then the items.
func (responsesAPI) piecesOf(r Received) ([]Piece, error) {
	var req responsesRequest
	if err := json.Unmarshal(r.Body, &req); err != nil {
		return nil, err
	}
	pieces := []Piece{{Text: string(req.Tools)}, {Text: req.Instructions}}
	for _, raw := range req.Input {
		pieces = append(pieces, Piece{Text: string(raw)})
	}
	return pieces, nil
}

func (d responsesAPI) answer(w http.ResponseWriter, prompt int, c cached) answer {
	return &responsesStream{w: w, prompt: prompt, cached: c, reasoning: d.reasoning}
}

// responsesStream writes events as the Responses API does.
type responsesStream struct {
	w         http.ResponseWriter
	prompt    int
	cached    cached
	reasoning int
	began     bool
	said      string   // of the text that is open; empty = none is
	items     []string // that are done
	output    int
}

// event writes an event; members follow its type.
func (s *responsesStream) event(kind, members string) {
	if !s.began {
		s.began = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.event("response.created", `"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}`)
		if s.reasoning != 0 {
			s.output += s.reasoning / 4
			const item = `{"id":"rs_%d","type":"reasoning","summary":[],"encrypted_content":%q}`
			s.event("response.output_item.added", fmt.Sprintf(`"output_index":0,"item":`+item, s.prompt, ""))
			s.done(fmt.Sprintf(item, s.prompt, base64.StdEncoding.EncodeToString([]byte(strings.Repeat("r", s.reasoning)))))
		}
	}
	fmt.Fprintf(s.w, "event: %s\ndata: {\"type\":%q,%s}\n\n", kind, kind, members)
}

// done ends an item.
func (s *responsesStream) done(item string) {
	s.event("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, len(s.items), item))
	s.items = append(s.items, item)
}

func (s *responsesStream) text(text string) {
	if s.said == "" {
		s.event("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[]}`, len(s.items)))
	}
	s.said += text
	s.output += len(text) / 4
	s.event("response.output_text.delta", fmt.Sprintf(`"item_id":"msg_1","output_index":%d,"content_index":0,"delta":%s`, len(s.items), quoted(text)))
}

func (s *responsesStream) toolCall(id, name, args string) {
	s.close()
	s.output += 20
	const item = `{"id":"fc_%s","type":"function_call","call_id":%q,"name":%q,"arguments":%s}`
	s.event("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":`+item, len(s.items), id, id, name, `""`))
	s.event("response.function_call_arguments.delta", fmt.Sprintf(`"item_id":"fc_%s","output_index":%d,"delta":%s`, id, len(s.items), quoted(args)))
	s.done(fmt.Sprintf(item, id, id, name, quoted(args)))
}

// close ends the text that is open.
func (s *responsesStream) close() {
	if s.said != "" {
		s.done(`{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","annotations":[],"text":` + quoted(s.said) + `}]}`)
		s.said = ""
	}
}

func (s *responsesStream) end() {
	s.close()
	s.event("response.completed", fmt.Sprintf(
		`"response":{"id":"resp_1","object":"response","status":"completed","output":[%s],"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"total_tokens":%d}}`,
		strings.Join(s.items, ","), s.prompt, s.cached.read, s.output, s.prompt+s.output))
}
