package transfer

import (
	"cmp"
	"encoding/json"
	"strings"

	"bobbin/app/core"
)

// langchainConstructor reads {"lc": 1, "type": "constructor", "id": […,
// "HumanMessage"], "kwargs": {…}}: what dumps and toJSON write.
func (r *reader) langchainConstructor() taken {
	var path []string
	r.into("id", &path, "the path of a class")
	if len(path) == 0 {
		r.fault("id must be the path of a message's class")
		return taken{}
	}
	class := strings.TrimSuffix(strings.TrimSuffix(path[len(path)-1], "Chunk"), "Message")
	return r.langchain(strings.ToLower(class), r.of("kwargs"))
}

// langchainDict reads {"type": "human", "data": {…}}, which messages_to_dict
// writes, and the same without data, which model_dump writes.
func (r *reader) langchainDict() taken {
	kind := strings.ToLower(strings.TrimSuffix(r.text("type"), "MessageChunk"))
	if r.fields.has("data") {
		return r.langchain(kind, r.of("data"))
	}
	return r.langchain(kind, r.fields)
}

// langchain reads the members of a message of LangChain's.
func (r *reader) langchain(kind string, data fields) taken {
	in := &reader{fields: data}
	defer func() { r.wrong = append(r.wrong, in.wrong...) }()
	role, ok := map[string]core.Role{
		"human": core.RoleUser, "ai": core.RoleAssistant, "tool": core.RoleTool, "system": core.RoleSystem,
		"chat": roleOf(in.text("role")),
	}[kind]
	if !ok {
		r.fault("type %q is not a message: there are human, ai, tool, system and chat", core.Clip(kind, 40))
		return taken{}
	}
	out := taken{message: core.Message{Role: role, ToolCallID: in.text("tool_call_id")}}
	m := &out.message
	if name := in.text("name"); role == core.RoleTool {
		m.ToolName = name
	} else {
		m.Author = name
	}
	if role == core.RoleTool && in.text("status") == "error" {
		m.Status = core.MessageFailed
	}
	m.ToolCalls = in.langchainCalls()
	in.content(&out, len(m.ToolCalls) > 0)
	about := &reader{fields: in.of("response_metadata")}
	m.Model = cmp.Or(about.text("model_name"), about.text("model"))
	m.FinishReason = finishOf(cmp.Or(about.text("finish_reason"), about.text("stop_reason")))
	in.wrong = append(in.wrong, about.wrong...)
	return out
}

// langchainCalls reads the calls. LangChain parses their arguments; what the model
// wrote is kept beside them for providers of OpenAI's dialect, and comes first.
func (r *reader) langchainCalls() []core.ToolCall {
	var broken []call
	r.into("invalid_tool_calls", &broken, "a list of calls")
	calls := append(r.calls(), callsOf(broken)...)
	var raw struct {
		ToolCalls []call `json:"tool_calls"`
	}
	r.into("additional_kwargs", &raw, "an object")
	written := map[string]string{}
	for _, c := range callsOf(raw.ToolCalls) {
		written[c.ID] = c.Arguments
	}
	if len(calls) == 0 {
		return callsOf(raw.ToolCalls)
	}
	for i, c := range calls {
		if text, ok := written[c.ID]; ok && c.ID != "" && sameJSON(text, c.Arguments) {
			calls[i].Arguments = text
		}
	}
	return calls
}

// sameJSON reports whether both texts are the same value, or no JSON at all.
func sameJSON(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return a == b
	}
	return string(encode(x)) == string(encode(y))
}

// finishOf returns why the model stopped in core's words.
func finishOf(word string) core.FinishReason {
	switch word {
	case "end_turn", "stop_sequence":
		return core.FinishStop
	case "max_tokens":
		return core.FinishLength
	case "tool_use":
		return core.FinishToolCalls
	}
	return core.FinishReason(word)
}
