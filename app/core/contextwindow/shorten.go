package contextwindow

import (
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
	return headTail(m.Content, room, fmt.Sprintf("\n[… shortened from %d tokens; the whole text is message %s …]\n", s.asText(), m.ID), count), calls
}

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

// headShare is the part of a shortened text that comes from its beginning.
const headShare = 2.0 / 3

// headTail returns the beginning and the end of text with the marker between, in at most
// limit tokens; at least the marker.
func headTail(text string, limit int, marker string, count core.TextCounter) string {
	room := limit - count.Text(marker) - 2 // the cuts may split a token each
	if room <= 0 {
		return strings.TrimSpace(marker)
	}
	head := nTokens(text, int(headShare*float64(room)), count, core.Clip)
	tail := lastTokens(text[len(head):], room-count.Text(head), count)
	for {
		out := head + marker + tail
		if count.Text(out) <= limit || head == "" && tail == "" {
			return out
		}
		head, tail = core.Clip(head, len(head)*9/10), prompttext.Tail(tail, len(tail)*9/10)
	}
}

// lastTokens returns about the longest end of text with at most n tokens.
func lastTokens(text string, n int, count core.TextCounter) string {
	return nTokens(text, n, count, prompttext.Tail)
}

// maxGuesses bounds how often nTokens counts a text to improve its cut.
const maxGuesses = 8

// nTokens guesses how much of text has n tokens until the guess is between 90 % of n and n.
// The first guess is small, and the next ones follow the text's own density in steps, so
// that a long text is never counted as a whole.
func nTokens(text string, n int, count core.TextCounter, clip func(string, int) string) string {
	if n <= 0 {
		return ""
	}
	best, low, high := "", 0, len(text) // low is known to fit, more than high is not
	size := min(high, n*4)
	for guess := 1; low < high && (guess <= maxGuesses || best == ""); guess++ {
		out := clip(text, size)
		got := count.Text(out)
		if got <= n {
			best, low = out, size
		} else {
			high = size - 1
		}
		if low == size && got >= n*9/10 {
			break
		}
		next := min(size*(n*19/20)/max(got, 1), 4*size) // the text may be denser further on
		size = min(max(next, low+1), high)
	}
	return best
}
