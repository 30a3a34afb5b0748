package openai

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"reflect"
	"slices"
	"strings"

	"bobbin/app/core"
)

// Limits of a request.
const (
	maxMessages = 20_000
	maxName     = 256 // bytes of the name of a session or a user
)

type completionRequest struct {
	Model               string            `json:"model"`
	Messages            []message         `json:"messages"`
	Stream              bool              `json:"stream"`
	StreamOptions       streamOptions     `json:"stream_options"`
	Tools               []toolDefinition  `json:"tools"`
	ToolChoice          toolChoice        `json:"tool_choice"`
	ParallelToolCalls   *bool             `json:"parallel_tool_calls"`
	MaxTokens           int               `json:"max_tokens"`
	MaxCompletionTokens int               `json:"max_completion_tokens"`
	Temperature         *float64          `json:"temperature"`
	TopP                *float64          `json:"top_p"`
	Stop                stringList        `json:"stop"`
	Seed                *int              `json:"seed"`
	N                   int               `json:"n"`
	ReasoningEffort     string            `json:"reasoning_effort"`
	ResponseFormat      *responseFormat   `json:"response_format"`
	Metadata            map[string]string `json:"metadata"`
	User                string            `json:"user"`
	SafetyIdentifier    string            `json:"safety_identifier"`
	Functions           json.RawMessage   `json:"functions"`
	Logprobs            bool              `json:"logprobs"`
	Modalities          []string          `json:"modalities"`
	Audio               json.RawMessage   `json:"audio"`

	instructions string                // of a response, before those of its messages
	response     *core.ResponseDetails // of a response; nil = none
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Role       string     `json:"role"`
	Content    content    `json:"content"`
	Name       string     `json:"name"`
	ToolCalls  []toolCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

// toolCall is a call of one of the client's tools.
type toolCall struct {
	ID       string       `json:"id,omitempty"` // a piece that goes on has none, and no type and name
	Type     string       `json:"type,omitempty"`
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// toolDefinition is a tool that the client executes.
type toolDefinition struct {
	Type     string          `json:"type"`
	Function core.ClientTool `json:"function"`
}

// responseFormat is the form in which the model answers.
type responseFormat struct {
	Type       core.FormatType     `json:"type"`
	JSONSchema core.ResponseFormat `json:"json_schema"`
}

// content is the content of a message: a text, or a list of parts.
type content struct {
	text  string
	files []file
	fault string // path within it, colon, what is wrong there; empty = nothing
}

// file is an image or a file in a message.
type file struct {
	field string // where in the content it is
	url   string // a data URL
	name  string
	id    core.BlobID // of a file that was uploaded; empty = its content is in url
}

// check adds the fault of the content of a field.
func (c content) check(f *core.Faults, field string) {
	if path, fault, bad := strings.Cut(c.fault, ": "); bad {
		f.Add(field+path, "%s", fault)
	}
}

// UnmarshalJSON reads a text or a list of parts. What is wrong with it is in fault.
func (c *content) UnmarshalJSON(data []byte) error {
	switch {
	case bytes.Equal(data, []byte("null")):
		return nil
	case data[0] == '"':
		return json.Unmarshal(data, &c.text)
	}
	var parts []contentPart
	if json.Unmarshal(data, &parts) != nil {
		c.fault = ": must be a text or a list of parts, objects with a type"
		return nil
	}
	var texts []string
	for i, p := range parts {
		text, f, err := p.read(fmt.Sprintf("[%d]", i))
		if err != nil {
			c.fault = err.Error()
			return nil
		}
		if f != nil {
			c.files = append(c.files, *f)
		} else if text != "" {
			texts = append(texts, text)
		}
	}
	c.text = strings.Join(texts, "\n")
	return nil
}

// contentPart is one part of a content. The parts of responses are flatter than those of chat completions.
type contentPart struct {
	Type     string      `json:"type"`
	Text     string      `json:"text"`
	Refusal  string      `json:"refusal"`
	ImageURL imageURL    `json:"image_url"`
	File     fileContent `json:"file"`
	fileContent
}

// fileContent is a file, or the id of one that was uploaded.
type fileContent struct {
	Data string      `json:"file_data"`
	Name string      `json:"filename"`
	ID   core.BlobID `json:"file_id"`
}

type imageURL string

// UnmarshalJSON reads a URL or an object with one.
func (u *imageURL) UnmarshalJSON(data []byte) error { return readTextOr(data, "url", (*string)(u)) }

// readTextOr reads a text, or an object that has it as the member.
func readTextOr(data []byte, member string, into *string) error {
	if data[0] == '"' {
		return json.Unmarshal(data, into)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object[member] == nil {
		return err
	}
	return json.Unmarshal(object[member], into)
}

// read returns the part's text, or its file.
func (p contentPart) read(field string) (string, *file, error) {
	of := p.File
	switch p.Type {
	case "text", "input_text", "output_text":
		return p.Text, nil, nil
	case "refusal":
		return p.Refusal, nil, nil
	case "image_url", "input_image":
		if p.ID == "" {
			if !strings.HasPrefix(string(p.ImageURL), "data:") {
				return "", nil, fmt.Errorf("%s: image_url must be a data: URL; this server does not fetch images", field)
			}
			return "", &file{field: field, url: string(p.ImageURL)}, nil
		}
		of = p.fileContent
	case "file":
	case "input_file":
		of = p.fileContent
	default:
		return "", nil, fmt.Errorf("%s: the type %.40q is not supported; use text, image_url or file", field, p.Type)
	}
	if of.ID == "" && !strings.HasPrefix(of.Data, "data:") {
		return "", nil, fmt.Errorf("%s: file needs file_id or file_data, a data: URL", field)
	}
	return "", &file{field: field, url: of.Data, name: of.Name, id: of.ID}, nil
}

// decode returns the content of a file's data URL and the name of the file.
func (f file) decode() (data []byte, name string, err error) {
	head, body, found := strings.Cut(strings.TrimPrefix(f.url, "data:"), ",")
	media, isBase64 := strings.CutSuffix(head, ";base64")
	if !found || !isBase64 {
		return nil, "", errors.New("must be a data: URL in base64")
	}
	if data, err = base64.StdEncoding.DecodeString(body); err != nil {
		return nil, "", errors.New("is not valid base64")
	}
	if f.name != "" {
		return data, f.name, nil
	}
	media, _, _ = mime.ParseMediaType(media)
	kind, extension, _ := strings.Cut(media, "/")
	if kind != "image" || extension == "" {
		return data, "file", nil
	}
	return data, "image." + extension, nil
}

type stringList []string

// UnmarshalJSON reads a text or a list of texts.
func (l *stringList) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		*l = make([]string, 1)
		return json.Unmarshal(data, &(*l)[0])
	}
	return json.Unmarshal(data, (*[]string)(l))
}

// toolChoice is auto, none, required, or the name of a function.
type toolChoice core.ToolChoice

// UnmarshalJSON reads a text or an object with a function.
func (t *toolChoice) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, (*string)(t))
	}
	var named struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if err := json.Unmarshal(data, &named); err != nil {
		return err
	}
	name := cmp.Or(named.Function.Name, named.Name)
	*t = toolChoice(core.ChooseTool(name))
	if named.Type != "function" || name == "" {
		return errors.New(`must be auto, none, required, or {"type": "function", "function": {"name": …}}`)
	}
	return nil
}

// check returns what is wrong with the request as a whole.
func (r *completionRequest) check() error {
	var f core.Faults
	switch {
	case len(r.Messages) == 0:
		f.Add("messages", "is empty")
	case len(r.Messages) > maxMessages:
		f.Add("messages", "has %d messages, at most %d are allowed", len(r.Messages), maxMessages)
	}
	if r.N > 1 {
		f.Add("n", "must be 1: a conversation has one answer at a time")
	}
	if len(r.Functions) > 0 {
		f.Add("functions", "is not supported; use tools")
	}
	for _, m := range r.Modalities {
		if m != "text" {
			f.Add("modalities", "must be text")
		}
	}
	if len(r.Audio) > 0 {
		f.Add("audio", "is not supported")
	}
	return f.Err()
}

// askInstructions makes the last instruction the user's message if there are no other messages.
func (r *completionRequest) askInstructions() {
	if n := len(r.Messages); n > 0 && !slices.ContainsFunc(r.Messages, func(m message) bool { return !m.isInstruction() }) {
		r.Messages[n-1].Role = "user"
	}
}

// options returns what the run does otherwise than its agent.
func (r *completionRequest) options() (*core.RunOptions, error) {
	var f core.Faults
	o := core.RunOptions{
		ModelParameters: core.ModelParameters{
			Temperature: r.Temperature, TopP: r.TopP, MaxOutputTokens: cmp.Or(r.MaxCompletionTokens, r.MaxTokens),
			Stop: r.Stop, Seed: r.Seed, ReasoningEffort: r.ReasoningEffort,
		},
		ToolChoice: core.ToolChoice(r.ToolChoice), ParallelToolCalls: r.ParallelToolCalls, Response: r.response,
	}
	texts := []string{r.instructions}
	for _, m := range r.Messages {
		if m.isInstruction() {
			texts = append(texts, m.Content.text)
		}
	}
	o.Instructions = strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n\n")
	if r.ResponseFormat != nil {
		o.ResponseFormat = &r.ResponseFormat.JSONSchema
		o.ResponseFormat.Type = r.ResponseFormat.Type
	}
	for i, t := range r.Tools {
		if t.Type != "function" {
			f.Add(fmt.Sprintf("tools[%d].type", i), "must be function")
		}
		o.Tools = append(o.Tools, t.Function)
	}
	if len(o.Tools) == 0 {
		o.ParallelToolCalls = nil // clients send it without tools
	}
	if reflect.ValueOf(o).IsZero() {
		return nil, nil
	}
	o.Lenient = true
	return &o, f.Err()
}

func (m message) isInstruction() bool { return m.Role == "system" || m.Role == "developer" }

// fieldNames are the names that clients know for fields in errors, which Bobbin's own API names
// otherwise.
type fieldNames struct {
	whole map[string]string // by the own name
	parts *strings.Replacer
}

// rename returns the error with the client's names of fields.
func (n fieldNames) rename(err error) error {
	var e *core.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return err
	}
	renamed := *e
	renamed.Fields = slices.Clone(e.Fields)
	for i, f := range renamed.Fields {
		name, ok := n.whole[f.Field]
		if !ok {
			name = n.parts.Replace(f.Field)
		}
		renamed.Fields[i].Field = name
	}
	return &renamed
}
