package providerhttp

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// highSurrogate is the first half of a surrogate pair at the end of a text, as JSON escapes it.
var highSurrogate = regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})$`)

// joinCharacters returns the data of an event in which no text ends in the middle of a character. Gateways cut
// between bytes, or between the halves of a surrogate pair: the first half comes with the next text of the same member
// and index. Halves has those that are kept.
func joinCharacters(data []byte, halves map[string][]byte) []byte {
	if len(halves) == 0 && utf8.Valid(data) && !bytes.Contains(data, []byte(`\ud`)) && !bytes.Contains(data, []byte(`\uD`)) {
		return data
	}
	texts, index, key := bytes.Split(data, []byte(`"`)), "", ""
	for i := 1; i < len(texts)-1; i++ {
		switch before := string(bytes.TrimSpace(texts[i-1])); {
		case strings.HasSuffix(before, "index"):
			index = string(texts[i])
		case before == ":" && i > 1: // between the name of a member and its text
			key = index + string(texts[i-2])
			texts[i] = slices.Concat(halves[key], texts[i])
			delete(halves, key)
		}
		text := texts[i]
		texts[i] = bytes.TrimRightFunc(text, func(r rune) bool { return r == utf8.RuneError }) // bytes of a character
		if at := highSurrogate.FindSubmatchIndex(text); at != nil {
			texts[i] = text[:at[2]]
		}
		if whole := len(texts[i]); whole < len(text) {
			halves[key] = slices.Clone(text[whole:])
		}
	}
	return bytes.Join(texts, []byte(`"`))
}
