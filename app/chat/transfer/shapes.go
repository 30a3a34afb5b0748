package transfer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"bobbin/app/core"
)

// importedMessage is a message as it was read.
type importedMessage struct {
	message core.Message   // without its text
	texts   []string       // the pieces of its text
	results []core.Message // of tools, which Anthropic writes as pieces of the user's message: they stand before it
	skip    bool           // no conversation goes through it any more
	leftOut int            // pieces that were not taken along, such as images and files
}

// fields are the members of a JSON object.
type fields map[string]json.RawMessage

// readMessage reads one message in the shape that it has. Members that it does not
// know are not taken along; a wrong type of one that it knows is an error that may
// be shown.
func readMessage(raw []byte) (importedMessage, error) {
	if !utf8.Valid(raw) {
		return importedMessage{}, core.Errorf(core.ErrInvalid, "is not UTF-8")
	}
	if err := core.CheckJSON(raw, core.MaxLineValues); err != nil {
		return importedMessage{}, err
	}
	var f fields
	if err := json.Unmarshal(raw, &f); err != nil || f == nil {
		return importedMessage{}, core.Errorf(core.ErrInvalid, "is not a JSON object")
	}
	r := reader{fields: f}
	var out importedMessage
	switch {
	case f.has("lc") || f.has("type") && !f.has("role") && (f.has("data") || f.has("content") || f.has("kwargs")):
		out = r.readLangChain()
	case f.has("role"):
		out = r.readMessage()
	case f.has("mapping"):
		return importedMessage{}, core.Errorf(core.ErrInvalid, "is a conversation of ChatGPT: the command bobbin import brings a session for each")
	default:
		return importedMessage{}, core.Errorf(core.ErrInvalid,
			`has no role: a message is {"role", "content", …} as Bobbin and OpenAI write it, or {"type", "data"} as LangChain does`)
	}
	out.message.Content = strings.Join(out.texts, "\n")
	if len(r.wrong) > 0 {
		return importedMessage{}, core.Errorf(core.ErrInvalid, "%s", strings.Join(r.wrong, "; "))
	}
	return out, nil
}

func (f fields) has(name string) bool {
	raw, ok := f[name]
	return ok && !bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

// maxWrong bounds how much is said about one message.
const maxWrong = 3

// reader reads the members of one message and notes what is wrong with them.
type reader struct {
	fields fields
	wrong  []string
}

func (r *reader) addFault(format string, args ...any) {
	if len(r.wrong) < maxWrong {
		r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
	}
}

// readField reads a member; nothing and null leave the value as it is.
func (r *reader) readField(name string, value any, want string) {
	if r.fields.has(name) && json.Unmarshal(r.fields[name], value) != nil {
		r.addFault("%s must be %s", name, want)
	}
}

func (r *reader) readText(name string) string {
	var s string
	r.readField(name, &s, "a text")
	return s
}

// readSection returns a reader of a member that is an object; its faults stay with r.
func (r *reader) readSection(name string) fields {
	var f fields
	r.readField(name, &f, "an object")
	return f
}

// readMessage reads Bobbin's and OpenAI's shapes: they differ in their tool calls, and
// in what only Bobbin has.
func (r *reader) readMessage() importedMessage {
	out := importedMessage{message: core.Message{
		Role: roleOf(r.readText("role")), ToolCallID: r.readText("tool_call_id"), ToolName: r.readText("tool_name"),
		Status: core.MessageStatus(r.readText("status")), Model: r.readText("model"), FinishReason: core.FinishReason(r.readText("finish_reason")),
		Source: core.Source(r.readText("source")), Author: r.readText("author"), AuthorID: r.readText("author_id"), ClientMessageID: r.readText("client_message_id"),
	}}
	m := &out.message
	if r.fields.has("function_call") || m.Role == "function" {
		r.addFault("the form with function_call is too old; write tool_calls and tool messages")
	}
	if name := r.readText("name"); name != "" && m.Role == core.RoleTool && m.ToolName == "" {
		m.ToolName = name
	} else if m.Author == "" && m.Role != core.RoleTool {
		m.Author = name
	}
	m.ToolCalls = r.readCalls()
	r.readContent(&out, len(m.ToolCalls) > 0)
	var parts []core.Part
	r.readField("parts", &parts, "a list of objects")
	for _, p := range parts {
		switch p.Type {
		case "text", "reasoning":
			out.message.Parts = append(out.message.Parts, core.Part{Type: p.Type, Text: p.Text, Signature: p.Signature})
		default:
			out.recordOmitted(strings.TrimSpace(p.Type + " " + p.Name))
		}
	}
	r.readField("pinned", &m.Pinned, "true or false")
	r.readField("feedback", &m.Feedback, "an object with rating and comment")
	r.readField("created_at", &m.CreatedAt, "a time such as 2026-01-02T03:04:05Z")
	r.readField("revised_at", &m.RevisedAt, "a time such as 2026-01-02T03:04:05Z")
	r.readField("revisions", &m.Revisions, "a list of objects with content and replaced_at")
	if r.fields.has("metadata") {
		m.Metadata = json.RawMessage(bytes.TrimSpace(r.fields["metadata"]))
	}
	onPath, deleted := true, (*time.Time)(nil)
	r.readField("on_path", &onPath, "true or false")
	r.readField("deleted_at", &deleted, "a time")
	out.skip = !onPath || deleted != nil
	return out
}

// roleOf returns the role of OpenAI's name for it.
func roleOf(name string) core.Role {
	return cmp.Or(map[string]core.Role{"developer": core.RoleSystem}[name], core.Role(name))
}

// recordOmitted says in the message that something of it was not taken along.
func (t *importedMessage) recordOmitted(what string) {
	t.leftOut++
	t.appendText("[" + core.Clip(what, 200) + ": not imported]")
}

func (t *importedMessage) appendText(text string) {
	if text != "" {
		t.texts = append(t.texts, text)
	}
}

// readContent reads a text, or the list of pieces that OpenAI, Anthropic and LangChain
// write; called says that the message has its tool calls already.
func (r *reader) readContent(out *importedMessage, called bool) {
	raw := bytes.TrimSpace(r.fields["content"])
	switch {
	case !r.fields.has("content"):
	case raw[0] != '[':
		out.appendText(r.readText("content"))
	default:
		var pieces []json.RawMessage
		r.readField("content", &pieces, "a text or a list")
		for i, piece := range pieces {
			if err := out.readPiece(piece, called); err != nil {
				r.addFault("content[%d] %s", i, err)
			}
		}
	}
}

// piece is one piece of a content list, of all providers together.
type piece struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Refusal   string          `json:"refusal"`
	Thinking  string          `json:"thinking"`
	Reasoning string          `json:"reasoning"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

func (t *importedMessage) readPiece(raw json.RawMessage, called bool) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		t.appendText(text)
		return nil
	}
	var p piece
	if err := json.Unmarshal(raw, &p); err != nil {
		return core.Errorf(core.ErrInvalid, "is neither a text nor an object with a type")
	}
	switch p.Type {
	case "text", "input_text", "output_text", "refusal":
		t.appendText(p.Text + p.Refusal)
	case "thinking", "reasoning":
		t.message.Parts = append(t.message.Parts, core.Part{Type: "reasoning", Text: p.Thinking + p.Reasoning, Signature: p.Signature})
	case "tool_use", "tool_call":
		if !called { // else it is there a second time
			t.message.ToolCalls = append(t.message.ToolCalls, core.ToolCall{ID: p.ID, Name: p.Name, Arguments: rawText(p.Input)})
		}
	case "":
		return core.Errorf(core.ErrInvalid, "has no type")
	default:
		if p.Type == "tool_result" && t.message.Role == core.RoleUser {
			return t.readResult(raw)
		}
		t.recordOmitted(p.Type)
	}
	return nil
}

// readResult reads the result of a tool as Anthropic writes it.
func (t *importedMessage) readResult(raw []byte) error {
	r, failed := reader{}, false
	_ = json.Unmarshal(raw, &r.fields) // it is an object
	out := importedMessage{message: core.Message{Role: core.RoleTool, ToolCallID: r.readText("tool_use_id")}}
	r.readContent(&out, true)
	if r.readField("is_error", &failed, "true or false"); failed {
		out.message.Status = core.MessageFailed
	}
	if len(r.wrong) > 0 {
		return core.Errorf(core.ErrInvalid, "%s", strings.Join(r.wrong, "; "))
	}
	out.message.Content = strings.Join(out.texts, "\n")
	t.results, t.leftOut = append(t.results, out.message), t.leftOut+out.leftOut
	return nil
}

// rawText returns arguments as they were written: the text of a JSON text, and the
// bytes of everything else.
func rawText(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return "{}"
	}
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// call is a tool call in Bobbin's, OpenAI's and LangChain's shapes.
type call struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Args      json.RawMessage `json:"args"`
	Signature string          `json:"signature"`
	Function  *struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// readCalls reads the tool calls; arguments keep the bytes they have.
func (r *reader) readCalls() []core.ToolCall {
	var list []call
	r.readField("tool_calls", &list, "a list of calls with id, name and arguments")
	return callsOf(list)
}

func callsOf(list []call) []core.ToolCall {
	var out []core.ToolCall
	for _, c := range list {
		made := core.ToolCall{ID: c.ID, Name: c.Name, Signature: c.Signature}
		switch {
		case c.Function != nil:
			made.Name, made.Arguments = c.Function.Name, rawText(c.Function.Arguments)
		case c.Args != nil:
			made.Arguments = rawText(c.Args)
		default:
			made.Arguments = rawText(c.Arguments)
		}
		out = append(out, made)
	}
	return out
}

// readLangChain reads {"lc": 1, "type": "constructor", "id": […, "HumanMessage"], "kwargs": {…}}, which dumps and
// toJSON write, {"type": "human", "data": {…}}, which messages_to_dict writes, and the same without data, which
// model_dump writes.
func (r *reader) readLangChain() importedMessage {
	kind, data := r.readText("type"), r.fields
	switch {
	case kind == "constructor" || r.fields.has("lc"):
		var path []string
		if r.readField("id", &path, "the path of a class"); len(path) > 0 {
			kind = path[len(path)-1]
		}
		data = r.readSection("kwargs")
	case r.fields.has("data"):
		data = r.readSection("data")
	}
	kind = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(kind), "chunk"), "message")
	in := &reader{fields: data}
	defer func() { r.wrong = append(r.wrong, in.wrong...) }()
	role, ok := map[string]core.Role{
		"human": core.RoleUser, "ai": core.RoleAssistant, "tool": core.RoleTool, "system": core.RoleSystem,
		"chat": roleOf(in.readText("role")),
	}[kind]
	if !ok {
		r.addFault("type %q is not a message: there are human, ai, tool, system and chat", core.Clip(kind, 40))
		return importedMessage{}
	}
	out := importedMessage{message: core.Message{Role: role, ToolCallID: in.readText("tool_call_id")}}
	m := &out.message
	if name := in.readText("name"); role == core.RoleTool {
		m.ToolName = name
	} else {
		m.Author = name
	}
	if role == core.RoleTool && in.readText("status") == "error" {
		m.Status = core.MessageFailed
	}
	m.ToolCalls = in.langchainCalls()
	in.readContent(&out, len(m.ToolCalls) > 0)
	about := &reader{fields: in.readSection("response_metadata")}
	m.Model = cmp.Or(about.readText("model_name"), about.readText("model"))
	stop := cmp.Or(about.readText("finish_reason"), about.readText("stop_reason"))
	m.FinishReason = cmp.Or(map[string]core.FinishReason{
		"end_turn": core.FinishStop, "stop_sequence": core.FinishStop, "max_tokens": core.FinishLength, "tool_use": core.FinishToolCalls,
	}[stop], core.FinishReason(stop))
	in.wrong = append(in.wrong, about.wrong...)
	return out
}

// langchainCalls reads the calls, also those that LangChain could not parse, or left as the provider wrote them.
func (r *reader) langchainCalls() []core.ToolCall {
	var broken []call
	r.readField("invalid_tool_calls", &broken, "a list of calls")
	if calls := append(r.readCalls(), callsOf(broken)...); len(calls) > 0 {
		return calls
	}
	var raw struct {
		ToolCalls []call `json:"tool_calls"`
	}
	r.readField("additional_kwargs", &raw, "an object")
	return callsOf(raw.ToolCalls)
}
