package providerhttp

import (
	"bytes"
	"regexp"
	"slices"
	"unicode/utf8"
)

// Halves of a surrogate pair, as JSON escapes them: at the end of a text, with all backslashes before it, and at the beginning.
var (
	highSurrogate = regexp.MustCompile(`\\+u[dD][89abAB][0-9a-fA-F]{2}$`)
	lowSurrogate  = regexp.MustCompile(`^\\u[dD][c-fC-F]`)
)

// joinCharacters returns the data of an event in which no text ends in the middle of a character. Gateways cut
// between bytes, or between the halves of a surrogate pair: the first half comes with the text that
// begins with the rest, and is dropped if there is none.
func (a *Answer) joinCharacters(data []byte) []byte {
	if utf8.Valid(data) && !bytes.Contains(data, []byte(`\ud`)) && !bytes.Contains(data, []byte(`\uD`)) {
		return data
	}
	texts := bytes.Split(data, []byte(`"`))
	half := a.half
	for i, text := range texts[:len(texts)-1] {
		if isBytes := len(text) > 0 && !utf8.RuneStart(text[0]); len(half) > 0 && (isBytes && half[0] != '\\' || lowSurrogate.Match(text) && half[0] == '\\') {
			text, a.half = slices.Concat(half, text), nil
		}
		whole := len(text) - halfLength(text)
		if whole < len(text) {
			a.half = slices.Clone(text[whole:])
		}
		texts[i] = text[:whole]
	}
	return bytes.Join(texts, []byte(`"`))
}

// halfLength returns the length of the first half of a character with which a text ends, as JSON has it.
func halfLength(text []byte) int {
	if escape := highSurrogate.Find(text); bytes.Count(escape, []byte(`\`))%2 == 1 { // else the backslash is the text's own
		return len(`\uD83D`)
	}
	for n := 1; n < min(utf8.UTFMax, len(text)+1); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) && !utf8.FullRune(last) {
			return n
		}
	}
	return 0
}
