package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// defaultRead is how much of a result one call reads, in bytes, if it does not say.
const defaultRead = 8_000

// NewReadResult returns the tool read_result, which reads parts of earlier tool results: prompts show only an excerpt
// of large ones. It answers with the requested bytes, in whole characters, and their place in the result, and reads
// only results of the call's own session.
func NewReadResult(messages core.MessageStore) *Custom {
	type arguments struct {
		MessageID string `json:"message_id"`
		Offset    int    `json:"offset"`
		Length    int    `json:"length"`
	}
	const example = `{"message_id": "01890a5d-ac96-774b-bcce-b302099a8057", "offset": 8000}`
	return builtIn(llm.ToolSpec{
		Name:        core.ToolReadResult,
		Description: "Reads a part of an earlier tool result of this conversation that was too large to be shown whole.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"message_id":{"type":"string","description":"id of the message with the result, as given in the shortened result"},` +
			`"offset":{"type":"integer","minimum":0,"description":"where to begin, in bytes; 0 is the beginning"},` +
			`"length":{"type":"integer","minimum":1,"maximum":32000,"description":"how many bytes; 8000 if left out"}},` +
			`"required":["message_id"],"additionalProperties":false}`),
	}, example, func(ctx context.Context, call Call, args arguments) (string, error) {
		m, err := messages.Get(ctx, core.Tenant{Owner: call.Session.Owner}, call.Session.ID, core.MessageID(args.MessageID))
		if errors.Is(err, core.ErrNotFound) || err == nil && (m.Role != core.RoleTool || m.DeletedAt != nil) {
			return "", fmt.Errorf("this conversation has no tool result with the id %q", core.Clip(args.MessageID, 100))
		}
		if err != nil {
			return "", errors.New("the result cannot be read at the moment")
		}
		args.Length = cmp.Or(args.Length, defaultRead)
		text := m.Content
		offset := args.Offset
		if offset >= len(text) {
			return "", fmt.Errorf("the result has only %d bytes; offset %d is behind its end", len(text), offset)
		}
		for offset < len(text) && !utf8.RuneStart(text[offset]) {
			offset++
		}
		part := core.Clip(text[offset:], max(args.Length, utf8.UTFMax))
		end := offset + len(part)
		more := "this is the end"
		if end < len(text) {
			more = fmt.Sprintf("continue at offset %d", end)
		}
		return fmt.Sprintf("[bytes %d to %d of %d; %s]\n%s", offset, end, len(text), more, part), nil
	})
}
