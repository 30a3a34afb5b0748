package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/core"
)

// block is a part of a result. Servers do not always send what the protocol says: what has an
// unexpected type is kept as it is, and a part that cannot be read does not take the others away.
type block struct {
	Type     string          `json:"type"`
	Text     json.RawMessage `json:"text"`
	Data     string          `json:"data"` // base64 of any kind, or a data URI; only its size is read
	Blob     string          `json:"blob"` // the same, of a resource
	MIMEType string          `json:"mimeType"`
	URI      string          `json:"uri"`
	Name     string          `json:"name"`
	Resource json.RawMessage `json:"resource"`
}

// blocksText returns the parts of a content, which is a list, one part or a text. It is not readable
// if nothing is known of any part but its type.
func blocksText(content json.RawMessage) (text string, readable bool) {
	list, ended := []json.RawMessage{content}, true
	if bytes.HasPrefix(content, []byte("[")) {
		list, ended = readArray(content)
	}
	var parts []string
	for _, raw := range list {
		if isNull(raw) {
			continue
		}
		part, ok := blockText(raw)
		parts, readable = append(parts, part), readable || ok
	}
	if !ended {
		parts = append(parts, fmt.Sprintf("[more than %d parts: the others were left out]", maxValues))
	}
	return strings.Join(parts, "\n"), readable
}

// blockText returns one part of a content.
func blockText(raw json.RawMessage) (text string, readable bool) {
	if !bytes.HasPrefix(raw, []byte("{")) {
		return valueText(raw), true
	}
	var b block
	_ = json.Unmarshal(raw, &b) // a field of another type is left out
	switch {
	case b.Type == "resource" && !isNull(b.Resource):
		var inner block
		_ = json.Unmarshal(b.Resource, &inner)
		switch {
		case inner.Blob != "":
			return placeholder("resource "+core.Clip(inner.URI, 1000), inner.MIMEType, inner.Blob), true
		case isNull(inner.Text):
			return "", true
		}
		return valueText(inner.Text), true
	case b.Type == "resource_link":
		return fmt.Sprintf("[resource %s, %s]", core.Clip(b.URI, 1000), core.Clip(b.Name, 200)), true
	case b.Type == "image", b.Type == "audio":
		return placeholder(b.Type, b.MIMEType, b.Data), true
	case !isNull(b.Text):
		return valueText(b.Text), true
	default:
		return fmt.Sprintf("[content of the type %q, which cannot be shown]", core.CleanText(core.Clip(b.Type, 100))), false
	}
}

// valueText returns a text as it is, and any other value as the server wrote it.
func valueText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return string(raw)
	}
	return text
}

// placeholder stands for what is not text.
func placeholder(what, kind, data string) string {
	if _, encoded, isURL := strings.Cut(data, ";base64,"); isURL {
		data = encoded
	}
	size := base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(data, "=")))
	return fmt.Sprintf("[%s %s, %d bytes]", what, core.Clip(kind, 100), size)
}

// isNull reports whether a member is missing or null.
func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// maxValues bounds how many values of one list of a server are read.
const maxValues = 10_000

// readArray returns the values of a JSON array, and whether these are all of them.
func readArray(raw json.RawMessage) (list []json.RawMessage, ended bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil, true
	}
	for d.More() {
		var value json.RawMessage
		if len(list) == maxValues || d.Decode(&value) != nil {
			return list, false
		}
		list = append(list, value)
	}
	return list, true
}

// fitMessage returns a message of a server as the SDK can read it. Without it one odd part, such as a
// content of an unknown type or one tool with a strange schema, would be the loss of the whole answer.
// The contents of results become texts; a tool that cannot be read keeps its name only. The id of an answer
// is a number, as those of requests are, and an error has a message.
func fitMessage(message []byte) []byte {
	message = bytes.TrimPrefix(message, []byte(byteOrderMark))
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method json.RawMessage `json:"method"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(message, &m) != nil || m.Method != nil {
		return message
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(bytes.Trim(m.ID, `"`))}
	var result map[string]json.RawMessage
	switch {
	case json.Unmarshal(m.Result, &result) == nil && len(result) > 0: // an error beside it is an empty one
		fitResult(result)
		answer["result"] = result
	case !isNull(m.Error):
		answer["error"] = m.Error
		if json.Unmarshal(m.Error, new(jsonrpc.Error)) != nil { // it says all that the server wrote
			answer["error"] = jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: valueText(m.Error)}
		}
	default:
		answer["result"] = m.Result
	}
	fitted, err := json.Marshal(answer)
	if err != nil {
		return message
	}
	return fitted
}

// byteOrderMark begins what some servers send.
const byteOrderMark = "\uFEFF"

// fitResult changes a result of the kinds that it knows by their members.
func fitResult(result map[string]json.RawMessage) {
	switch {
	case bytes.HasPrefix(result["tools"], []byte("[")):
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
	case result["tools"] != nil:
	case result["content"] != nil, result["structuredContent"] != nil, result["isError"] != nil:
		// Its texts, a placeholder or a note for any other part, or its structured content as the server wrote it.
		text, readable := blocksText(result["content"])
		if structured := result["structuredContent"]; !readable && !isNull(structured) {
			text, readable = string(structured), true
		}
		failed := strings.EqualFold(strings.Trim(string(result["isError"]), `"`), "true")
		if !readable && text != "" { // an empty text: it has nothing
			failed, text = true, "the call was executed, and the answer could not be read: "+text
		}
		delete(result, "structuredContent")
		delete(result, "_meta") // nobody reads it
		result["content"], _ = json.Marshal([]any{map[string]string{"type": "text", "text": text}})
		result["isError"], _ = json.Marshal(failed)
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
