package tokens

import (
	"unicode"
	"unicode/utf8"
)

// class is the class of a character in the pre-token pattern of cl100k_base.
type class uint8

const (
	other   class = iota // [^\s\p{L}\p{N}]
	letter               // \p{L}
	number               // \p{N}
	space                // \s without the two below
	newline              // \r and \n
)

// classOf returns the class of r.
func classOf(r rune) class {
	switch {
	case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
		return letter
	case r == ' ':
		return space
	case r >= '0' && r <= '9':
		return number
	case r == '\n' || r == '\r':
		return newline
	case r < utf8.RuneSelf && r > ' ':
		return other
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	default:
		return other
	}
}

// firstClass returns the class of the first character of s and its length in bytes; 0 for
// an empty s.
func firstClass(s string) (class, int) {
	if s == "" {
		return other, 0
	}
	if b := s[0]; b < utf8.RuneSelf {
		return classOf(rune(b)), 1
	}
	r, n := utf8.DecodeRuneInString(s)
	return classOf(r), n
}

// pretokenLength returns the length in bytes of the first pre-token of s, which must be
// valid UTF-8 and not empty: the first match of cl100k_base's pattern (see pattern).
// Repeated calls on the rest read each byte at most three times.
func pretokenLength(s string) int {
	if n := contractionLength(s); n > 0 {
		return n
	}
	c, n := firstClass(s)
	next, _ := firstClass(s[n:])
	switch {
	case c == letter:
		return n + runLength(s[n:], letter, len(s))
	case next == letter && len(s) > n && (c == other || c == space):
		return n + runLength(s[n:], letter, len(s))
	case c == number:
		return n + runLength(s[n:], number, 2)
	case c == other:
		return symbolsLength(s, n)
	case s[0] == ' ' && next == other && len(s) > n:
		return symbolsLength(s, n)
	default:
		// White space up to its last line break, or all but the last character, which belongs to what
		// follows.
		end, last, lines := 0, 0, 0
		for {
			c, n := firstClass(s[end:])
			if n == 0 || c != space && c != newline {
				break
			}
			end, last = end+n, n
			if c == newline {
				lines = end
			}
		}
		switch {
		case lines > 0:
			return lines
		case end == len(s) || end == last:
			return end
		default:
			return end - last
		}
	}
}

// contractionLength returns the length of 's, 't, 're, 've, 'm, 'll or 'd at the
// beginning of s, in any case; 0 = there is none.
func contractionLength(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 { // lower case, for ASCII letters
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(s) > 2 && s[2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if len(s) > 2 && s[2]|0x20 == 'l' {
			return 3
		}
	}
	return 0
}

// runLength returns the length in bytes of the characters of the class at the
// beginning of s, at most limit of them.
func runLength(s string, want class, limit int) int {
	size := 0
	for range limit {
		c, n := firstClass(s[size:])
		if n == 0 || c != want {
			break
		}
		size += n
	}
	return size
}

// symbolsLength returns the length of [^\s\p{L}\p{N}]+[\r\n]* at the beginning of s; its
// first n bytes are known to match.
func symbolsLength(s string, n int) int {
	n += runLength(s[n:], other, len(s))
	return n + runLength(s[n:], newline, len(s))
}
