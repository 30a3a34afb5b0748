package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/core"
)

// fitMessage returns a message of a server as the SDK can read it. Without it one odd part, such as a
// content of an unknown type or one tool with a strange schema, would be the loss of the whole answer.
// The contents of results become texts; a tool that cannot be read keeps its name only.
func fitMessage(message []byte) []byte {
	var m struct {
		Version json.RawMessage `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  json.RawMessage `json:"method"`
		Result  json.RawMessage `json:"result"`
	}
	var result map[string]json.RawMessage
	if json.Unmarshal(message, &m) != nil || m.Method != nil || json.Unmarshal(m.Result, &result) != nil || !fitResult(result) {
		return message
	}
	fitted, err := json.Marshal(map[string]any{"jsonrpc": m.Version, "id": m.ID, "result": result})
	if err != nil {
		return message
	}
	return fitted
}

// fitResult changes a result of the kinds that it knows by their members, and reports whether it did.
func fitResult(result map[string]json.RawMessage) bool {
	switch {
	case result["tools"] != nil:
		fitTools(result)
	case result["content"] != nil, result["structuredContent"] != nil, result["isError"] != nil:
		text, readable := resultText(result["content"], result["structuredContent"])
		failed := strings.EqualFold(strings.Trim(string(result["isError"]), `"`), "true")
		if !readable {
			failed, text = true, "the call was executed, and the answer could not be read: "+text
		}
		delete(result, "structuredContent")
		delete(result, "_meta") // nobody reads it
		result["content"], _ = json.Marshal([]any{map[string]string{"type": "text", "text": text}})
		result["isError"], _ = json.Marshal(failed)
	default:
		return false
	}
	return true
}

// fitTools changes each tool of a list, but null.
func fitTools(result map[string]json.RawMessage) {
	if !bytes.HasPrefix(result["tools"], []byte("[")) {
		return
	}
	list, _ := readArray(result["tools"])
	fitted := make([]any, 0, len(list))
	for _, raw := range list {
		if !isNull(raw) {
			fitted = append(fitted, fitTool(raw))
		}
	}
	if text, err := json.Marshal(fitted); err == nil {
		result["tools"] = text
	}
}

// fitTool returns a tool as it is, or its name alone if it cannot be read: it is left out then.
func fitTool(raw json.RawMessage) any {
	const most = 900 // levels: the SDK reads 1,000 of a message
	if _, depth := core.JSONSize(raw); depth < most && json.Unmarshal(raw, new(sdk.Tool)) == nil {
		return raw
	}
	var t struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(raw, &t)
	return map[string]any{"name": t.Name, "inputSchema": unreadableTool}
}

// unreadableTool is the schema of a tool that cannot be read.
const unreadableTool = "it cannot be read"

// fittedBody is the body of an answer whose messages fit.
type fittedBody struct {
	io.ReadCloser

	next func() ([]byte, error) // the next part of the body
	rest []byte                 // of the part that is being read
	err  error                  // behind the rest
}

// Read reads of the next part.
func (b *fittedBody) Read(p []byte) (int, error) {
	for len(b.rest) == 0 && b.err == nil {
		b.rest, b.err = b.next()
	}
	n := copy(p, b.rest)
	if b.rest = b.rest[n:]; len(b.rest) > 0 {
		return n, nil
	}
	return n, b.err
}
