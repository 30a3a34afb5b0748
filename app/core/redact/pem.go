package redact

import (
	"regexp"
	"strings"
)

// The lines of a private key in PEM, also in source code, quotations, diffs and numbered listings, with
// escaped line breaks. A key may be cut off: without a last line it ends with the base64, without a
// first one it begins with it. Certificates and public keys are not secret.
const (
	pemMarks  = "[ \\t\\r\"'`,;+>|*#:→]"
	pemBreaks = `(?:` + pemMarks + `|\n|\\[nr]?)*`
	pemNumber = `(?:\d+` + pemMarks + `+)?`
	pemLine   = pemBreaks + pemNumber + `[A-Za-z0-9+/=]{16,}`
	pemHeader = pemBreaks + `(?:\w*-[\w-]*: [^\n\\]*|\d+)(?:\n|\\[nr]?)` // Proc-Type: 4,ENCRYPTED; or the number of a line
	pemLast   = `(?:` + pemBreaks + pemNumber + `[A-Za-z0-9+/=]{1,15})?` + pemBreaks + pemNumber + `-----END [\w -]{0,40}PRIVATE KEY[\w ]{0,20}-----`
)

var (
	pemKey  = regexp.MustCompile(`-----BEGIN [\w -]{0,40}PRIVATE KEY[\w ]{0,20}-----(?:(?:` + pemHeader + `|` + pemLine + `)*(?:` + pemLast + `)|(?:(?:` + pemHeader + `)*` + pemLine + `)+)`)
	pemTail = regexp.MustCompile(`(?m)(?:^|\\[nr])(` + pemMarks + `*` + pemNumber + `[A-Za-z0-9+/=]{16,}(?:` + pemLine + `)*` + pemLast + `)`)
)

// findPrivateKeys adds keys in PEM.
func (f *finder) findPrivateKeys() {
	if !strings.Contains(f.text, "PRIVATE KEY") {
		return
	}
	for _, m := range pemKey.FindAllStringIndex(f.text, -1) {
		f.add(m[0], m[1], privateKey)
	}
	for _, m := range pemTail.FindAllStringSubmatchIndex(f.text, -1) {
		f.add(m[2], m[3], privateKey)
	}
}
