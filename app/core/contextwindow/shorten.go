package contextwindow

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"bobbin/app/core"
)

// messageOverhead is what a message costs besides its text (B8).
const messageOverhead = 4

// shortened returns the content and the tool calls of a message that is held to
// its slot's limit: head and tail with a marker between.
func shortened(m core.Message, s Slot, count counter) (string, []core.ToolCall) {
	calls, used := shortenedCalls(m, s, count)
	room := s.Limit - messageOverhead - used
	if s.Orphan {
		room -= orphanWrap
	}
	if count.Text(m.Content) <= room {
		return m.Content, calls
	}
	return headTail(m.Content, room, marker(m, s), count), calls
}

// marker says what is missing and where it is.
func marker(m core.Message, s Slot) string {
	return fmt.Sprintf("\n[… shortened from %d tokens; the whole text is message %s …]\n", s.Tokens, m.ID)
}

// shortenedCalls replaces large arguments by a JSON object that says so; it
// returns what all calls cost.
func shortenedCalls(m core.Message, s Slot, count counter) ([]core.ToolCall, int) {
	if len(m.ToolCalls) == 0 {
		return nil, 0
	}
	calls := make([]core.ToolCall, len(m.ToolCalls))
	used := 0
	each := max((s.Limit-shortMinimum)/len(calls), 0)
	for i, c := range m.ToolCalls {
		if n := count.Text(c.Arguments); n > each/2 && n > shortPerCall/2 {
			c.Arguments = leftOutArguments(n, m.ID)
		}
		calls[i] = c
		used += callOverhead + count.Text(c.Name) + count.Text(c.Arguments)
	}
	return calls, used
}

// callOverhead is what a tool call costs besides its name and arguments.
const callOverhead = 8

// leftOutArguments stands in for arguments; it is valid JSON, as providers ask.
func leftOutArguments(tokens int, id core.MessageID) string {
	raw, err := json.Marshal(map[string]string{"left_out": fmt.Sprintf("%d tokens, see message %s", tokens, id)})
	if err != nil {
		return "{}" // a map of strings always encodes
	}
	return string(raw)
}

// headShare is the part of a shortened text that comes from its beginning.
const headShare = 2.0 / 3

// headTail returns the beginning and the end of text with the marker between, in
// at most limit tokens; at least the marker.
func headTail(text string, limit int, marker string, count counter) string {
	room := limit - count.Text(marker) - 2 // the cuts may split a token each
	if room <= 0 {
		return strings.TrimSpace(marker)
	}
	head := firstTokens(text, int(headShare*float64(room)), count)
	tail := lastTokens(text[len(head):], room-count.Text(head), count)
	for {
		out := head + marker + tail
		if count.Text(out) <= limit || head == "" && tail == "" {
			return out
		}
		head, tail = clip(head, len(head)*9/10), clipLeft(tail, len(tail)*9/10)
	}
}

// firstTokens returns the longest beginning of text, within a factor, that has at
// most n tokens.
func firstTokens(text string, n int, count counter) string {
	return nTokens(text, n, count, clip)
}

// lastTokens is firstTokens for the end of text.
func lastTokens(text string, n int, count counter) string {
	return nTokens(text, n, count, clipLeft)
}

// nTokens cuts text to a guess of n tokens and corrects the guess until it fits.
// The guess starts small, so that a long text is not counted as a whole.
func nTokens(text string, n int, count counter, cut func(string, int) string) string {
	if n <= 0 {
		return ""
	}
	size := min(len(text), n*4)
	out := cut(text, size)
	for {
		got := count.Text(out)
		switch {
		case got > n:
			size = min(size*n/got, size-1)
		case size < len(text) && got < n*9/10:
			// More fits: grow by what this text's density says, but never back
			// over a size that was too large.
			grown := min(len(text), size+size*(n-got)/(2*max(got, 1))+1)
			if bigger := cut(text, grown); count.Text(bigger) <= n {
				out, size = bigger, grown
				continue
			}
			return out
		default:
			return out
		}
		out = cut(text, size)
	}
}

// clip returns at most the first n bytes of s, whole characters only.
func clip(s string, n int) string {
	if n >= len(s) {
		return s
	}
	n = max(n, 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// clipLeft returns at most the last n bytes of s, whole characters only.
func clipLeft(s string, n int) string {
	if n >= len(s) {
		return s
	}
	from := len(s) - max(n, 0)
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return s[from:]
}
