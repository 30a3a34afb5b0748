package redact

import "strings"

// mostUserInfo is how many bytes of a URL are looked at for a password.
const mostUserInfo = 256

// urls adds the passwords of URLs such as postgres://user:password@host.
func (f *finder) urls() {
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

// userPassword returns the place of the password in "user:password@", which begins at
// i; from = to when there is none.
func userPassword(text string, i int) (from, to int) {
	end := i
	for end < len(text) && end < i+mostUserInfo && isURL(text[end]) {
		end++
	}
	rest := text[i:end]
	authority := rest
	if n := strings.IndexAny(rest, "/?#"); n >= 0 {
		authority = rest[:n]
	}
	at, colon := strings.LastIndexByte(authority, '@'), strings.IndexByte(authority, ':')
	if at < 0 && colon >= 0 && !all(authority[colon+1:], isDigit) {
		at = strings.LastIndexByte(rest, '@') // no port: a password with a slash in it
	}
	if colon < 0 || at < colon || placeholder(rest[colon+1:at]) {
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
