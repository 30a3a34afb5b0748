package anthropic

import (
	"bytes"
	"fmt"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// rawArguments are the arguments of tool calls as the models wrote them, in the
// order in which they stand in the request. The SDK would rewrite them, and the
// bytes of a prompt must not change because providers cache it; it gets marks to
// write instead.
type rawArguments []string

// marked matches nothing that a request can hold: the SDK escapes U+0001, and a
// quote within a text.
const marked = `"input":"\u0001arguments %d"`

// addMark keeps the call's arguments and returns the mark that stands for them.
func (r *rawArguments) addMark(c core.ToolCall) string {
	*r = append(*r, llm.Arguments(c))
	return fmt.Sprintf("\x01arguments %d", len(*r)-1)
}

// insertInto returns the request's body with the arguments for the marks. A mark that a
// text of the request would imitate is not one: each is looked for once, after the
// one before it.
func (r rawArguments) insertInto(body []byte) []byte {
	if len(r) == 0 {
		return body
	}
	var out bytes.Buffer
	for i, arguments := range r {
		before, after, found := bytes.Cut(body, fmt.Appendf(nil, marked, i))
		if !found {
			break
		}
		out.Write(before)
		out.WriteString(`"input":`)
		out.WriteString(arguments)
		body = after
	}
	out.Write(body)
	return out.Bytes()
}
