package core

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// CleanText returns text as it can be stored everywhere: invalid UTF-8 and U+0000
// become U+FFFD (PostgreSQL takes neither).
func CleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// IsSteering reports whether a terminal or a page obeys the character in the place of
// showing it: control characters but line ends and tabs, and those that turn the
// direction of writing.
func IsSteering(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || r > unicode.MaxLatin1 && unicode.Is(unicode.Bidi_Control, r)
}

// StripControls returns text without the characters of IsSteering.
func StripControls(text string) string {
	isPlain := true
	for i := 0; i < len(text) && isPlain; i++ { // most texts of code and English are: six times as fast
		isPlain = text[i] >= ' ' && text[i] < 0x7f || text[i] == '\n' || text[i] == '\t'
	}
	if isPlain {
		return text
	}
	return strings.Map(func(r rune) rune {
		if IsSteering(r) {
			return -1
		}
		return r
	}, text)
}

// Clip returns at most the first n bytes of s, whole characters only.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// TitleOf returns the first words of a text as a title: at most 60 characters on one line, in whole words if possible,
// and without final punctuation.
func TitleOf(text string) string {
	const maxRead, maxTitle = 2_000, 60 // bytes, characters
	line := strings.Join(strings.Fields(StripControls(CleanText(Clip(text, maxRead)))), " ")
	if utf8.RuneCountInString(line) > maxTitle {
		line = string([]rune(line)[:maxTitle-1])
		if cut := strings.LastIndexByte(line, ' '); cut > len(line)/2 {
			line = line[:cut]
		}
		return strings.TrimRight(line, " ,;:.!?") + "…"
	}
	return strings.TrimRight(line, " ,;:.。")
}

// Join returns the texts that are not empty, with sep between them.
func Join(sep string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return s == "" }), sep)
}

// Number writes a number for people: 12,345.
func Number(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// UTF16Len returns how many code units a text has in UTF-16, as JavaScript counts.
func UTF16Len(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// UTF16Index returns how many bytes of the text have at most so many code units of UTF-16.
func UTF16Index(s string, units int) int {
	for i, r := range s {
		if units -= utf16.RuneLen(r); units < 0 {
			return i
		}
	}
	return len(s)
}

// VisibleText returns the text without tag characters: nobody sees them, and models
// read them as letters.
func VisibleText(s string) string {
	const first, last = '\U000E0000', '\U000E007F'
	return strings.Map(func(r rune) rune {
		if first <= r && r <= last {
			return -1
		}
		return r
	}, s)
}

// Literal returns the whole text on one line, with every invisible character escaped: people
// approve exactly what they see.
func Literal(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch high, low := utf16.EncodeRune(r); {
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case high != unicode.ReplacementChar:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Suggest says which of the known words was meant by who wrote word, with what stands before it, or else the hint.
func Suggest(word string, known []string, prefix, hint string) string {
	if near := Nearest(word, known); near != "" {
		return "did you mean " + prefix + near + "?"
	}
	return hint
}

// Nearest returns the word of known that somebody who wrote word most likely
// meant, and "" if none is near: at most a third of the letters differ.
func Nearest(word string, known []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, k := range known {
		if d := editDistance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// editDistance returns how many bytes have to be inserted, deleted, replaced, or
// swapped with their neighbor to make b of a.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
