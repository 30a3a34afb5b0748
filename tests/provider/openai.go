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
