package term

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// spansOf parses the Markdown within a line: emphasis, code, links. What is not certainly
// Markdown stays as written, such as 2*3*4 or <T>. It never drops text.
func spansOf(text string, s style) []span {
	var spans []span
	plain := 0 // start of the text that is not in spans yet
	for i := 0; i < len(text); {
		inner, n := parseMarkup(text, i, s)
		if n == 0 {
			_, size := utf8.DecodeRuneInString(text[i:])
			i += size
			continue
		}
		spans = append(spans, span{text[plain:i], s})
		spans = append(spans, inner...)
		i += n
		plain = i
	}
	return append(spans, span{text[plain:], s})
}

// parseMarkup returns the spans of the markup at i and its length; 0 if there is none.
func parseMarkup(text string, i int, s style) ([]span, int) {
	switch text[i] {
	case '\\':
		if i+1 < len(text) && strings.IndexByte("\\`*_{}[]()#+-.!|<>~", text[i+1]) >= 0 {
			return []span{{text[i+1 : i+2], s}}, 2
		}
	case '`':
		return parseCode(text[i:], s)
	case '*', '_', '~':
		n := runLength(text[i:])
		mark := text[i : i+n]
		styles := map[string]style{
			"*": italic, "_": italic, "**": bold, "__": bold, "***": bold | italic, "___": bold | italic, "~~": strike,
		}
		add, ok := styles[mark]
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+n:])
		if !ok || !canOpenEmphasis(mark[0], before, after) {
			return []span{{mark, s}}, n
		}
		end := closingMarkIndex(text[i+n:], mark)
		if end < 0 {
			return []span{{mark, s}}, n
		}
		return spansOf(text[i+n:i+n+end], s|add), n + end + n
	case '[':
		return parseLink(text[i:], s)
	case '!':
		if i+1 < len(text) && text[i+1] == '[' {
			spans, n := parseLink(text[i+1:], s)
			if n > 0 {
				return append([]span{{"image: ", s}}, spans...), n + 1
			}
		}
	}
	return nil, 0
}

// parseCode parses a code span, which ends with as many backticks as it begins with.
func parseCode(text string, s style) ([]span, int) {
	n := runLength(text)
	for i := n; i < len(text); {
		if text[i] != '`' {
			i++
			continue
		}
		m := runLength(text[i:])
		if m != n {
			i += m
			continue
		}
		inner := text[n:i]
		if len(inner) > 2 && inner[0] == ' ' && inner[len(inner)-1] == ' ' {
			inner = inner[1 : len(inner)-1]
		}
		return []span{{inner, s | bold}}, i + n
	}
	return []span{{text[:n], s}}, n
}

// runLength returns how often the first byte repeats.
func runLength(text string) int { return len(text) - len(strings.TrimLeft(text, text[:1])) }

// canOpenEmphasis reports whether emphasis may begin between two characters. Inside ASCII
// words it may not: that is arithmetic, or a name with underscores.
func canOpenEmphasis(mark byte, before, after rune) bool {
	if after == utf8.RuneError || unicode.IsSpace(after) {
		return false
	}
	return !isWord(before) || mark == '*' && (before > unicode.MaxASCII || !isWord(after))
}

func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// closingMarkIndex returns where the mark closes the emphasis, -1 if it does not.
func closingMarkIndex(text, mark string) int {
	for i := 0; i < len(text); {
		switch {
		case text[i] == '\\':
			i += 2
		case text[i] == '`':
			_, n := parseCode(text[i:], 0)
			i += n
		case text[i] == mark[0]:
			n := runLength(text[i:])
			after, _ := utf8.DecodeRuneInString(text[i+n:])
			if n == len(mark) && i > 0 && !unicode.IsSpace(rune(text[i-1])) && (mark[0] != '_' || !isWord(after)) {
				return i
			}
			i += n
		default:
			i++
		}
	}
	return -1
}

// parseLink parses [text](address).
func parseLink(text string, s style) ([]span, int) {
	middle := strings.Index(text, "](")
	if middle < 0 || strings.Contains(text[1:middle], "[") {
		return nil, 0
	}
	address := text[middle+2:]
	end, depth := -1, 0
	for i := 0; i < len(address) && end < 0; i++ {
		switch address[i] {
		case '(':
			depth++
		case ')':
			if depth == 0 {
				end = i
			}
			depth--
		case ' ':
			return nil, 0 // prose in brackets, or a title: stays as written
		}
	}
	if end < 0 {
		return nil, 0
	}
	spans, address := spansOf(text[1:middle], s|underline), address[:end]
	if address != text[1:middle] {
		spans = append(spans, span{" (" + address + ")", s})
	}
	return spans, middle + 2 + end + 1
}
