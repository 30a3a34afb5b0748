package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

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

// resultText returns the result of a call as text: its texts, a placeholder or a note for any other
// part, or its structured content as the server wrote it; empty = it has nothing.
func resultText(content, structured json.RawMessage) (text string, readable bool) {
	text, readable = blocksText(content)
	if !readable && !isNull(structured) {
		return string(structured), true
	}
	return text, readable || text == ""
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
		raw := b.Resource
		var b block
		_ = json.Unmarshal(raw, &b) // a field of another type is left out
		switch {
		case b.Blob != "":
			return placeholder("resource "+core.Clip(b.URI, 1000), b.MIMEType, b.Blob), true
		case isNull(b.Text):
			return "", true
		}
		return valueText(b.Text), true
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
	if head, rest, ok := strings.Cut(data, ";base64,"); ok && strings.HasPrefix(head, "data:") {
		data = rest
		if kind == "" {
			kind = strings.TrimPrefix(head, "data:")
		}
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
