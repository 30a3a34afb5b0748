package redact

import "strings"

// maxUserInfo is how many bytes of a URL may hold the user and the password.
const maxUserInfo = 256

// findURLPasswords adds the passwords of URLs such as postgres://user:password@host.
func (f *finder) findURLPasswords() {
	for i := 0; ; {
		n := strings.Index(f.text[i:], "://")
		if n < 0 {
			return
		}
		i += n + len("://")
		if from, to := userPassword(f.text, i); from < to {
			f.add(from, to, password)
			i = to
		}
	}
}

// userPassword returns the place of the password in "user:password@" at i; from = to means
// none.
func userPassword(text string, i int) (from, to int) {
	end := i
	for end < len(text) && end < i+maxUserInfo && isURL(text[end]) {
		end++
	}
	rest := text[i:end]
	authority := rest
	if n := strings.IndexAny(rest, "/?#"); n >= 0 {
		authority = rest[:n]
	}
	at, colon := strings.LastIndexByte(authority, '@'), strings.IndexByte(authority, ':')
	if at < 0 && colon >= 0 && !areAll(authority[colon+1:], isDigit) {
		at = strings.LastIndexByte(rest, '@') // no port: a password with a slash in it
	}
	if colon < 0 || at < colon || placeholder.MatchString(rest[colon+1:at]) {
		return i, i
	}
	return i + colon + 1, i + at
}

// isURL reports whether the byte may stand in a URL as people write them.
func isURL(b byte) bool {
	switch b {
	case '"', '\'', '`', '<', '>', '\\', '|':
		return false
	default:
		return b > ' '
	}
}
