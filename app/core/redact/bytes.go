package redact

import (
	"unicode"
	"unicode/utf8"
)

func isLower(b byte) bool { return b >= 'a' && b <= 'z' }
func isUpper(b byte) bool { return b >= 'A' && b <= 'Z' }
func isDigit(b byte) bool { return b >= '0' && b <= '9' }
func isAlpha(b byte) bool { return isLower(b) || isUpper(b) }
func isAlnum(b byte) bool { return isAlpha(b) || isDigit(b) }

// isWord reports whether the byte may stand in an identifier or in a base64url text.
func isWord(b byte) bool { return isAlnum(b) || b == '_' || b == '-' }

func isUpperOrDigit(b byte) bool { return isUpper(b) || isDigit(b) }

func isHex(b byte) bool { return isDigit(b) || b >= 'a' && b <= 'f' }

func isBase64(b byte) bool { return isAlnum(b) || b == '+' || b == '/' || b == '=' }

// isToken reports whether the byte may stand in a token of any kind.
func isToken(b byte) bool {
	return isWord(b) || b == '.' || b == '/' || b == '+' || b == '=' || b == '~' || b == ':' || b == '%'
}

func isBlank(b byte) bool { return b == ' ' || b == '\t' }

// all reports whether every byte of s is of the class.
func all(s string, class func(byte) bool) bool { return while(s, 0, class) == len(s) }

// while returns where the bytes of the class that begin at i end.
func while(s string, i int, class func(byte) bool) int {
	for i < len(s) && class(s[i]) {
		i++
	}
	return i
}

// blanks returns where at most most blanks that begin at i end.
func blanks(s string, i, most int) int {
	end := min(len(s), i+most)
	for i < end && isBlank(s[i]) {
		i++
	}
	return i
}

// traits is what a text is made of.
type traits struct {
	letters, digits, symbols int  // symbols: all but letters, digits, "_", "-", "." and blanks
	turns                    int  // between lower case, upper case and digits, next to each other or not
	run                      int  // length of the longest run of ASCII letters and digits
	blank                    bool // there is one
}

// class is what a byte is.
type class int

const (
	otherByte class = iota
	lowerByte
	upperByte
	digitByte
)

func classOf(b byte) class {
	switch {
	case isLower(b):
		return lowerByte
	case isUpper(b):
		return upperByte
	case isDigit(b):
		return digitByte
	default:
		return otherByte
	}
}

func traitsOf(s string) traits {
	var t traits
	run, last := 0, otherByte
	for _, r := range s {
		c := otherByte
		if r < utf8.RuneSelf {
			c = classOf(byte(r))
		}
		if c == otherByte {
			run = 0
			t.other(r)
			continue
		}
		if last != otherByte && last != c {
			t.turns++
		}
		last = c
		if run++; run > t.run {
			t.run = run
		}
		if c == digitByte {
			t.digits++
		} else {
			t.letters++
		}
	}
	return t
}

// other counts a character that is no ASCII letter or digit.
func (t *traits) other(r rune) {
	switch {
	case r == '_' || r == '-' || r == '.':
	case unicode.IsSpace(r):
		t.blank = true
	case r >= utf8.RuneSelf && unicode.IsLetter(r):
		t.letters++
	default:
		t.symbols++
	}
}
