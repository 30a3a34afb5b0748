package core

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// Fewer letters of base64 or hex are text: a key, a hash or a token, which a model may need.
const (
	leastEncoded = 1024
	leastDataURL = 256 // of the data of a data: URL
	wrappedLine  = 60  // of a line of base64 that goes on in the next one
	leastUpper   = 4   // one in so many A-Z and a-z is upper in base64 of several lines: it has 34 to 99 in 100, a list of paths 0 to 28
)

// longestPrefix bounds what stands before the data of a URL, in bytes.
const longestPrefix = 128

// describeEncoded returns the text with descriptions, such as [image/png, 150 KB], in the places of
// data: long runs of base64 or hex, and the data: URLs around them. It is linear in the size of the text.
func describeEncoded(text string) string {
	var out strings.Builder
	done := 0 // bytes of the text
	for i := 0; i < len(text); {
		end, kind := readEncoded(text, i)
		begin, media := i, ""
		if end-i >= leastDataURL {
			begin, media = dataURL(text, i)
		}
		if media == "" && end-i >= leastEncoded {
			media = kind
		}
		if media != "" {
			size := (end - i) / 4 * 3
			if kind == "hex" {
				size = (end - i) / 2
			}
			fmt.Fprintf(&out, "%s[%s, %s]", text[done:begin], media, ByteSize(int64(size)))
			done = end
		}
		i = max(end, i+1)
	}
	if done == 0 {
		return text
	}
	return out.String() + text[done:]
}

// readEncoded returns where the letters of base64 end that begin at i, and what they are: base64,
// hex, or empty for other text. Base64 may be wrapped into lines, indented or not, or words; a short last one is not part of it.
func readEncoded(text string, i int) (end int, kind string) {
	end, n := letters{}.read(text, i)
	first := end
	for line := i; n.other && end-line >= wrappedLine; {
		line = len(text) - len(strings.TrimLeft(text[end+len(lineEnd.FindString(text[end:])):], " \t"))
		next, all := n.read(text, line)
		if next-line < wrappedLine {
			break
		}
		end, n = next, all
	}
	switch {
	case !n.other && n.digit && n.upper+n.lower > 0:
		kind = "hex"
	case n.digit && n.lower > 0 && n.upper > 0 && (end == first || n.upper > (n.upper+n.lower)/leastUpper):
		kind = "base64"
	}
	for pad := 0; pad < 2 && end > i && end < len(text) && text[end] == '='; pad++ {
		end++
	}
	return end, kind
}

// letters are what a text has of the letters of base64.
type letters struct {
	upper, lower int
	digit, other bool // other = no letter of hex
	alphabet     byte // '+' with + and /, '-' with - and _; 0 = not known yet
}

// read returns where the letters of one alphabet end that begin at i, and n with them.
func (n letters) read(text string, i int) (int, letters) {
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			n.digit = true
		case c >= 'a' && c <= 'z':
			n.lower, n.other = n.lower+1, n.other || c > 'f'
		case c >= 'A' && c <= 'Z':
			n.upper, n.other = n.upper+1, n.other || c > 'F'
		case n.alphabet != '-' && (c == '+' || c == '/' || c == '\\' && isEscaped(text[i:])):
			n.alphabet, n.other = '+', true
		case n.alphabet != '+' && (c == '-' || c == '_'):
			n.alphabet, n.other = '-', true
		default:
			return i, n
		}
	}
	return i, n
}

// isEscaped reports whether the text begins with a letter of base64 as JSON, or JSON in a text of JSON, may write it.
func isEscaped(text string) bool {
	rest := strings.ToLower(strings.TrimLeft(text[:min(len(text), 9)], `\`))
	return strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, "u002f") || strings.HasPrefix(rest, "u002b")
}

// lineEnd is the end of a line, also as JSON writes it.
var lineEnd = regexp.MustCompile(`^(\r?\n|(\\r)?\\n|(\\\\r)?\\\\n)`)

// dataURL returns where the data: URL begins whose data begins at i, and its type; empty = there is none.
func dataURL(text string, i int) (begin int, media string) {
	before := text[max(i-longestPrefix, 0):i]
	at := strings.LastIndex(before, "data:")
	if at < 0 || !strings.HasSuffix(before, ";base64,") || strings.ContainsAny(before[at:], " \"'<>()\n") {
		return i, ""
	}
	media, _, _ = strings.Cut(before[at+len("data:"):], ";")
	media = strings.NewReplacer(`\\/`, "/", `\/`, "/", `\u002f`, "/", `\u002F`, "/").Replace(media)
	return i - len(before) + at, cmp.Or(media, "data")
}
