package redact

import (
	"regexp"
	"strings"
)

// urlPassword matches a URL such as postgres://user:password@host up to the host. Without an "@" before
// its first slash, the slash is part of a password if what precedes it is no port.
var urlPassword = regexp.MustCompile("://[^/?#:@" + notURL + "]*:(?:([^/?#" + notURL + "]*)@|(\\d*[^\\d/?#@" + notURL + "][^/?#@" + notURL + "]*[/?#][^" + notURL + "]*)@)")

// notURL are characters that do not stand in a URL as people write them.
const notURL = `\x00- "'` + "`" + `<>\\|`

// findURLPasswords adds the passwords of URLs.
func (f *finder) findURLPasswords() {
	if !strings.Contains(f.text, "://") {
		return
	}
	for _, m := range urlPassword.FindAllStringSubmatchIndex(f.text, -1) {
		if from, to := max(m[2], m[4]), max(m[3], m[5]); from < to && !placeholder.MatchString(f.text[from:to]) {
			f.add(from, to, password)
		}
	}
}
