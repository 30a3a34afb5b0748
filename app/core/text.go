package core

import (
	"strings"
	"unicode/utf8"
)

// CleanText returns text as it can be stored everywhere: invalid UTF-8 and U+0000
// become U+FFFD (PostgreSQL takes neither).
func CleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
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
