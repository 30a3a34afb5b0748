package redact

import "strings"

func isLower(b byte) bool { return b >= 'a' && b <= 'z' }
func isUpper(b byte) bool { return b >= 'A' && b <= 'Z' }
func isDigit(b byte) bool { return b >= '0' && b <= '9' }
func isAlnum(b byte) bool { return isLower(b) || isUpper(b) || isDigit(b) }

// isWord reports whether the byte may stand in an identifier or in a base64url text.
func isWord(b byte) bool { return isAlnum(b) || b == '_' || b == '-' }

func isUpperOrDigit(b byte) bool { return isUpper(b) || isDigit(b) }

func isHex(b byte) bool { return isDigit(b) || b >= 'a' && b <= 'f' }

func isBase64(b byte) bool { return isAlnum(b) || b == '+' || b == '/' || b == '=' }

// isToken reports whether the byte may stand in a token of any kind.
func isToken(b byte) bool {
	return isWord(b) || b == '.' || b == '/' || b == '+' || b == '=' || b == '~' || b == ':' || b == '%'
}

// classEnd returns where the bytes of the class that begin at i end.
func classEnd(s string, i int, class func(byte) bool) int {
	for i < len(s) && class(s[i]) {
		i++
	}
	return i
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }
