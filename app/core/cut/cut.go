// Package cut shortens texts to a number of tokens, and leaves of them what says most:
// the beginning, both ends, or of a summary its newest content.
package cut

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"bobbin/app/core"
)

// Least is the smallest limit at which something is left of every text.
const Least = 16

// counter counts tokens.
type counter interface {
	Text(s string) int
}

// Ellipsis marks where something was cut.
const Ellipsis = "…"

const (
	// bytesPerToken bounds how much text a cut of so many tokens may keep. Longer
	// tokens exist, but hardly any text is made of them.
	bytesPerToken = 16
	// longestToken is the length in bytes of cl100k_base's longest token, a run of
	// blanks: longer text than that for each token need not be counted.
	longestToken = 128
)

// Head returns text with at most limit tokens: its beginning, cut after a word
// where that costs little, with an Ellipsis. Text within the limit comes back as
// it is. The result is valid UTF-8 if text is.
func Head(count counter, text string, limit int) string {
	if len(text) <= limit*longestToken && count.Text(text) <= limit {
		return text
	}
	return fit(count, limit, min(len(text), limit*bytesPerToken), func(n int) string {
		if n == 0 {
			return ""
		}
		return wordEnd(core.Clip(text, n)) + Ellipsis
	})
}

// Middle returns text with at most limit tokens: two thirds of them its
// beginning, one third its end, and between them a mark that says how much is
// missing. Text within the limit comes back as it is.
func Middle(count counter, text string, limit int) string {
	if len(text) <= limit*longestToken && count.Text(text) <= limit {
		return text
	}
	out := fit(count, limit, min(len(text), limit*bytesPerToken), func(n int) string {
		if n == 0 {
			return ""
		}
		front, back := core.Clip(text, n-n/3), tail(text, n/3)
		return front + missing(len(text)-len(front)-len(back), "bytes") + back
	})
	if out == "" { // the mark alone was too much
		return Head(count, text, limit)
	}
	return out
}

// fit returns the result of build for the largest size that it finds, at most
// size, that has at most limit tokens. Sizes shrink in proportion to what is too
// much, and faster with every try, so that there are few tries whatever the text.
func fit(count counter, limit, size int, build func(size int) string) string {
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

// Characters returns text with at most most characters, mark included: its
// beginning and its end. It is for text that is too much whatever its tokens.
func Characters(text string, most int) string {
	if len(text) <= most {
		return text
	}
	n := utf8.RuneCountInString(text)
	if n <= most {
		return text
	}
	mark := missing(n-most, "characters")
	keep := max(most-utf8.RuneCountInString(mark)-2, 0) // the number in the mark may grow by a digit
	front, back := runesFromStart(text, keep-keep/3), runesFromEnd(text, keep/3)
	return front + missing(n-keep, "characters") + back
}

func missing(n int, what string) string {
	return fmt.Sprintf(" […%d %s left out…] ", n, what)
}

func runesFromStart(s string, n int) string {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return s[:i]
}

func runesFromEnd(s string, n int) string {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return s[i:]
}

// tail returns the last n bytes of text, or a little less so that no rune is cut.
func tail(text string, n int) string {
	if len(text) <= n {
		return text
	}
	from := len(text) - n
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}

// wordEnd takes a half word off the end, unless that is a lot.
func wordEnd(text string) string {
	if i := strings.LastIndexFunc(text, unicode.IsSpace); i > len(text)*4/5 {
		return strings.TrimRightFunc(text[:i], unicode.IsSpace)
	}
	return text
}

// Line returns the beginning of text on one line, of at most most bytes. What
// it returned once it returns again as it is.
func Line(text string, most int) string {
	short := core.Clip(text, 2*most)
	line := strings.Join(strings.Fields(short), " ")
	if len(line) <= most && len(short) == len(text) {
		return line
	}
	return wordEnd(core.Clip(line, most-len(Ellipsis))) + Ellipsis
}
