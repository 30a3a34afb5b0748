// Package prompttext fits foreign texts into prompts: it shortens and quotes them.
//
// The functions that shorten keep the most useful part within a number of tokens: the
// beginning, both ends, or the newest content of a summary.
//
// Harmless neutralizes text that a prompt quotes: a summary, a pinned message, a transcript, a
// search result. Quoted text is data. It must not end the fence around it, begin another, look
// like the next message of a chat, or contain the tokens with which a model's chat template
// marks the speaker. Harmless is a pure function, linear in the size of the text and
// idempotent. It removes nothing: it replaces one character of each mark.
package prompttext

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"bobbin/app/core"
)

// MinTokens is the smallest limit at which every text keeps some content.
const MinTokens = 16

// Ellipsis marks a cut.
const Ellipsis = "…"

const (
	// bytesPerToken bounds the bytes that a cut keeps for each token. Longer tokens
	// exist, but hardly any text consists of them.
	bytesPerToken = 16
	// maxTokenBytes is the length of cl100k_base's longest token, a run of blanks: a
	// text with more bytes for each token need not be counted.
	maxTokenBytes = 128
)

// Head returns the beginning of text with at most limit tokens, cut after a word where that
// costs little, with an Ellipsis. Text within the limit is returned unchanged. The result is
// valid UTF-8 if text is.
func Head(count core.TextCounter, text string, limit int) string {
	if len(text) <= limit*maxTokenBytes && count.Text(text) <= limit {
		return text
	}
	return Within(count, limit, len(text), func(n int) string {
		if n == 0 {
			return ""
		}
		return wordEnd(core.Clip(text, n)) + Ellipsis
	})
}

// Middle returns text with at most limit tokens: two thirds of them its beginning, one third
// its end, and between them a mark with the number of missing bytes. Text within the limit
// is returned unchanged.
func Middle(count core.TextCounter, text string, limit int) string {
	if len(text) <= limit*maxTokenBytes && count.Text(text) <= limit {
		return text
	}
	out := Within(count, limit, len(text), func(n int) string {
		if n == 0 {
			return ""
		}
		front, back := core.Clip(text, n-n/3), Tail(text, n/3)
		return front + Missing(len(text)-len(front)-len(back), "bytes") + back
	})
	if out == "" { // the mark alone exceeds the limit
		return Head(count, text, limit)
	}
	return out
}

// Within returns the result of build for the largest number of bytes that it finds, up to size,
// that has at most limit tokens; empty if none has. Sizes shrink in proportion to the excess, and
// faster with every try, so that there are few tries for any text.
func Within(count core.TextCounter, limit, size int, build func(size int) string) string {
	size = min(size, limit*bytesPerToken)
	for try := 1; size > 0; try++ {
		out := build(size)
		n := count.Text(out)
		if n <= limit {
			return out
		}
		size = min(size-1, size*max(limit, 0)/n*(64-min(try, 63))/64)
	}
	if out := build(0); count.Text(out) <= limit {
		return out
	}
	return ""
}

// Characters returns the beginning and the end of text with at most limit characters, mark
// included. It is for text that is too long whatever its tokens.
func Characters(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	all := []rune(text)
	if len(all) <= limit {
		return text
	}
	mark := Missing(len(all)-limit, "characters")
	keep := max(limit-utf8.RuneCountInString(mark)-2, 0) // the number in the mark may grow by a digit
	return string(all[:keep-keep/3]) + Missing(len(all)-keep, "characters") + string(all[len(all)-keep/3:])
}

// Missing returns the mark that replaces n bytes or characters.
func Missing(n int, what string) string { return fmt.Sprintf(" […%d %s left out…] ", n, what) }

// Tail returns at most the last n bytes of text, whole characters only.
func Tail(text string, n int) string {
	if len(text) <= n {
		return text
	}
	from := len(text) - max(n, 0)
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}

// wordEnd removes a partial word from the end, unless that is a large part of the text.
func wordEnd(text string) string {
	if i := strings.LastIndexFunc(text, unicode.IsSpace); i > len(text)*4/5 {
		return strings.TrimRightFunc(text[:i], unicode.IsSpace)
	}
	return text
}

// Line returns the beginning of text on one line, of at most limit bytes. Applied to its own
// result it changes nothing.
func Line(text string, limit int) string {
	short := core.Clip(text, 2*limit)
	line := strings.Join(strings.Fields(short), " ")
	if len(line) <= limit && len(short) == len(text) {
		return line
	}
	return wordEnd(core.Clip(line, limit-len(Ellipsis))) + Ellipsis
}

// Unfenced returns what is inside a code fence that encloses the whole text.
func Unfenced(text string) string {
	if !strings.HasPrefix(text, "```") || !strings.HasSuffix(text, "```") || strings.Count(text, "```") != 2 {
		return text
	}
	first, body, ok := strings.Cut(text, "\n")
	if !ok || strings.ContainsAny(strings.TrimPrefix(first, "```"), " \t`") {
		return text
	}
	return strings.TrimSpace(strings.TrimSuffix(body, "```"))
}
