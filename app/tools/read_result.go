package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// messageReader reads a message of a session.
type messageReader interface {
	Get(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID) (core.Message, error)
}

// ReadResult reads parts of earlier tool results, of which prompts show only an
// excerpt when they are large.
type ReadResult struct {
	messages messageReader
}

// NewReadResult returns the tool read_result.
func NewReadResult(messages messageReader) *ReadResult { return &ReadResult{messages: messages} }

// How much of a result is read at once, in bytes.
const (
	usualRead = 8_000
	mostRead  = 32_000
)

// Spec tells the model what the tool is and takes.
func (*ReadResult) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name:        core.ToolReadResult,
		Description: "Reads a part of an earlier tool result of this conversation that was too large to be shown whole.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"message_id":{"type":"string","description":"id of the message that holds the result, as the shortened result says it"},` +
			`"offset":{"type":"integer","minimum":0,"description":"where to begin, in bytes; 0 is the beginning"},` +
			`"length":{"type":"integer","minimum":1,"maximum":32000,"description":"how many bytes; 8000 if left out"}},` +
			`"required":["message_id"],"additionalProperties":false}`),
	}
}

// Idempotent reports true: reading changes nothing.
func (*ReadResult) Idempotent() bool { return true }

// Call answers with the bytes asked for, in whole characters, and says where they
// are in the result. Only tool results of the call's own session can be read.
func (r *ReadResult) Call(ctx context.Context, call Call) (string, error) {
	args, err := arguments[struct {
		MessageID string `json:"message_id"`
		Offset    int    `json:"offset"`
		Length    int    `json:"length"`
	}](call.Arguments, `{"message_id": "01890a5d-ac96-774b-bcce-b302099a8057", "offset": 8000}`)
	switch {
	case err != nil:
		return "", err
	case args.Offset < 0:
		return "", errors.New("the offset must be 0 or more")
	case args.Length < 0 || args.Length > mostRead:
		return "", fmt.Errorf("the length must be 1 to %d", mostRead)
	}
	m, err := r.messages.Get(ctx, core.Scope{Owner: call.Session.Owner}, call.Session.ID, core.MessageID(args.MessageID))
	if errors.Is(err, core.ErrNotFound) || err == nil && (m.Role != core.RoleTool || m.DeletedAt != nil) {
		return "", fmt.Errorf("this conversation has no tool result with the id %q", core.Clip(args.MessageID, 100))
	}
	if err != nil {
		return "", errors.New("the result cannot be read at the moment")
	}
	if args.Length == 0 {
		args.Length = usualRead
	}
	return passage(m.Content, args.Offset, args.Length)
}

// passage returns a part of the text and where it is.
func passage(text string, offset, length int) (string, error) {
	if offset >= len(text) {
		return "", fmt.Errorf("the result has %d bytes, so there is nothing at offset %d", len(text), offset)
	}
	for offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset++
	}
	part := core.Clip(text[offset:], max(length, utf8.UTFMax))
	end := offset + len(part)
	more := "that is its end"
	if end < len(text) {
		more = fmt.Sprintf("read on at offset %d", end)
	}
	return fmt.Sprintf("[bytes %d to %d of %d; %s]\n%s", offset, end, len(text), more, part), nil
}
