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
	if (len(calls) > 0 || hasFiles(m)) && count.Text(m.Content) <= room {
		return m.Content, calls // without calls and images it is the text that is too long
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
		base, args := callOverhead+count.Text(c.Name), count.Text(c.Arguments)
		if base+args > max(each/2, shortPerCall) {
			c.Arguments = leftOutArguments(args, m.ID)
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

// maxGuesses bounds how often a text is counted for a better cut.
const maxGuesses = 8

// nTokens guesses how much of text has n tokens until the guess is between 90 %
// of n and n. The first guess is small, and the next ones follow the text's own
// density, in steps, so that a long text is not counted as a whole.
func nTokens(text string, n int, count counter, cut func(string, int) string) string {
	if n <= 0 {
		return ""
	}
	best, low, high := "", 0, len(text) // low is known to fit, more than high is not
	size := min(high, n*4)
	for guess := 1; low < high && (guess <= maxGuesses || best == ""); guess++ {
		out := cut(text, size)
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
