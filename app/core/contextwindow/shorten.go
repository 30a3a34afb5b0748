package contextwindow

import (
	"cmp"
	"fmt"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
)

// messageOverhead is the cost of a message besides its text.
const messageOverhead = 4

// shortenMessage returns the content and the tool calls of a message within its slot's
// limit: head and tail with a marker between.
func shortenMessage(m core.Message, s Slot, count core.TextCounter) (string, []core.ToolCall) {
	calls, used := shortenedCalls(m, s, count)
	room := s.Limit - messageOverhead - used
	if s.Orphan {
		room -= orphanWrap
	}
	if (len(calls) > 0 || hasFiles(m)) && count.Text(m.Content) <= room {
		return m.Content, calls // without calls and images the text is too long
	}
	marker := fmt.Sprintf("\n[… shortened from %d tokens; the whole text is message %s …]\n", s.asText(), m.ID)
	out := prompttext.Within(count, room, len(m.Content), func(n int) string {
		if n == 0 {
			return ""
		}
		head := core.Clip(m.Content, int(headShare*float64(n)))
		return head + marker + prompttext.Tail(m.Content, n-len(head))
	})
	return cmp.Or(out, strings.TrimSpace(marker)), calls
}

// headShare is the part of a shortened text that comes from its beginning.
const headShare = 2.0 / 3

// shortenedCalls replaces large arguments with a JSON object that says so; it also returns
// the tokens of all calls.
func shortenedCalls(m core.Message, s Slot, count core.TextCounter) ([]core.ToolCall, int) {
	if len(m.ToolCalls) == 0 {
		return nil, 0
	}
	calls := make([]core.ToolCall, len(m.ToolCalls))
	used := 0
	each := max((s.Limit-minShortened)/len(calls), 0)
	for i, c := range m.ToolCalls {
		base, args := callOverhead+count.Text(c.Name), count.Text(c.Arguments)
		if base+args > max(each/2, shortPerCall) {
			c.Arguments = fmt.Sprintf(`{"left_out":"%d tokens, see message %s"}`, args, m.ID)
			args = count.Text(c.Arguments)
		}
		if base+args > max(each/2, shortPerCall) { // the tool's name is very long
			c.Arguments, args = "{}", 1
		}
		calls[i] = c
		used += base + args
	}
	return calls, used
}

// callOverhead is the cost of a tool call besides its name and arguments.
const callOverhead = 8
