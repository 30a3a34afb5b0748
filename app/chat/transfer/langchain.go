package transfer

import (
	"cmp"
	"strings"

	"bobbin/app/core"
)

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
	m.FinishReason = finishOf(cmp.Or(about.readText("finish_reason"), about.readText("stop_reason")))
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

// finishOf returns why the model stopped in core's words.
func finishOf(word string) core.FinishReason {
	known := map[string]core.FinishReason{
		"end_turn": core.FinishStop, "stop_sequence": core.FinishStop, "max_tokens": core.FinishLength, "tool_use": core.FinishToolCalls,
	}
	return cmp.Or(known[word], core.FinishReason(word))
}
