package redact

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"bobbin/app/core"
)

// Sizes of values, in bytes.
const (
	minPassword = 4
	minToken    = 8
	minBearer   = 16  // of a token after "Bearer" alone
	maxValue    = 128 // of which is decided; a longer secret is replaced whole
	maxLabel    = 16  // longer than any label
)

// label is the end of a name whose value is secret, in lower case and without
// separators.
type label struct {
	suffix string
	kind   kind
}

//nolint:gochecknoglobals // a constant table
var labels = []label{
	{"password", password}, {"passwd", password}, {"passphrase", password}, {"passwort", password},
	{"privatekey", privateKey}, {"secretaccesskey", secret}, {"secret", secret},
	{"apikey", apiKey}, {"accesskey", apiKey}, {"secretkey", apiKey}, {"encryptionkey", apiKey}, {"signingkey", apiKey}, {"tokenkey", apiKey},
	{"token", token}, {"credentials", token}, {"authorization", token},
}

// labelKind returns the kind of secret that the name at the end of text introduces,
// such as DB_PASSWORD, dbPassword or "API key"; false = none.
func (f *finder) labelKind(text string) (kind, bool) {
	if !strings.ContainsRune("dDtTyYnNeEsS", rune(text[len(text)-1])) {
		return "", false
	}
	var buf [maxLabel]byte
	n := len(buf)
	for i := len(text) - 1; i >= 0 && n > 0 && (isWord(text[i]) || text[i] == ' '); i-- {
		if isAlnum(text[i]) {
			n--
			buf[n] = text[i] | 0x20 // in lower case; digits have the bit
		}
	}
	name := string(buf[n:])
	for _, l := range labels {
		if strings.HasSuffix(name, l.suffix) {
			return l.kind, true
		}
	}
	if strings.HasSuffix(name, "pwd") || strings.HasSuffix(name, "pass") { // PWD, DB_PASS; neither FOO_W_D nor compass
		if last := strings.ToLower(text[max(0, len(text)-5):]); last == "_pass" || strings.HasSuffix(last, "pwd") {
			return password, true
		}
	}
	return "", false
}

// readForeignLabel looks at the character that begins at i, which is not ASCII, and
// returns where to continue.
func (f *finder) readForeignLabel(i int) int {
	for _, label := range []string{"пароль", "Пароль", "密码", "密碼", "パスワード"} {
		if strings.HasPrefix(f.text[i:], label) {
			return f.valueEnd(i, i+len(label), password)
		}
	}
	_, size := utf8.DecodeRuneInString(f.text[i:])
	return i + size
}

// separator stands between a label and its value: closing quotes, an assignment or a
// verb, an opening quote, and the scheme of a header.
var separator = regexp.MustCompile(`^["'\x60*)\]\\]{0,4}[ \t]{0,8}(?:: ?(?:str|string) ?=|:=|=>|={1,3}|[:：>]|(?:is|lautet)\b:?)\*{0,2}[ \t]{0,8}([fb]?\\{0,3}["'\x60])?(?i:((?:bearer|basic|token|digest|apikey) +))?`)

// value is what follows a label.
type value struct {
	from, to int
	scheme   bool // "Bearer" or the like stands before it
	certain  bool // it is in quotes, or directly behind "="
}

// valueEnd adds the secret behind the label from i to end, if there is one, and
// returns where to continue.
func (f *finder) valueEnd(i, end int, k kind) int {
	if i > 0 && f.text[i-1] == '/' { // /etc/passwd: …
		return end
	}
	v, ok := f.valueAfter(i, end)
	if !ok {
		return end
	}
	if to := f.shapeEnd(v.from); to > v.from {
		return to
	}
	if !isSecret(f.text[v.from:v.to], k, v) {
		return end
	}
	if v.to-v.from > maxValue-utf8.UTFMax {
		v.to += valueLength(f.text[v.to:])
	}
	f.add(v.from, v.to, k)
	return v.to
}

// valueAfter returns the value of the label from i to end; false = there is none.
func (f *finder) valueAfter(i, end int) (value, bool) {
	after := f.textFrom(end, 64)
	v := value{}
	m := separator.FindStringSubmatchIndex(after)
	switch {
	case m != nil:
		v = value{from: end + m[1], scheme: m[4] >= 0, certain: m[2] >= 0 || after[:m[1]] == "="}
	case strings.HasPrefix(f.text[i:], "--") && strings.HasPrefix(after, " "):
		v = value{from: end + 1, certain: true}
	default:
		return v, false
	}
	v.to = v.from + valueLength(f.textFrom(v.from, maxValue))
	if m != nil && m[2] >= 0 && (v.to == len(f.text) || !strings.ContainsRune("\"'`\\", rune(f.text[v.to]))) {
		v.certain = false // a sentence in quotes
	}
	// Of a value that holds a marker, the secret is gone: what is left of it is none.
	marker := strings.Index(f.text[v.from:v.to], strings.TrimRight(markerOpen, ": "))
	return v, v.to > v.from && (marker < 0 || markerLength(f.text[v.from+marker:]) == 0)
}

// valueLength returns the length of the value that text begins with. It ends at
// white space, at a quote, and before another assignment.
func valueLength(text string) int {
	end := len(text)
	for i, r := range text {
		if isEnd(r) || r == '\\' && i+1 < len(text) && strings.IndexByte(`nrt"'`, text[i+1]) >= 0 ||
			(r == '&' || r == ';' || r == ',') && assignment.MatchString(core.Clip(text[i+1:], 64)) {
			end = i
			break
		}
	}
	return len(strings.TrimRight(text[:end], `,;.)]}:\`))
}

// isEnd reports whether the character ends every value.
func isEnd(r rune) bool {
	switch r {
	case '"', '\'', '`', '<', '>', '|', '，', '。', '；', '、', '）', '」', '』', '】':
		return true
	default:
		return r <= ' ' || r >= 0x7f && (unicode.IsSpace(r) || unicode.IsControl(r))
	}
}

// assignment is the beginning of a name and a sign, or of nothing.
var assignment = regexp.MustCompile(`^(?:[\w-]*$|[\w-]+[=:])`)

// isSecret reports whether the value behind a label looks like a secret: a password
// has a digit or stands where only a value can stand, a token has letters and digits.
func isSecret(text string, k kind, v value) bool {
	if placeholder.MatchString(text) {
		return false
	}
	if k == password {
		return len(text) >= minPassword && (hasDigit(text) || v.certain && !strings.ContainsAny(text, "(."))
	}
	if len(text) < minToken || classEnd(text, 0, isToken) < len(text) {
		return false
	}
	lower, upper := strings.IndexFunc(text, unicode.IsLower) >= 0, strings.IndexFunc(text, unicode.IsUpper) >= 0
	return hasDigit(text) && (lower || upper) || v.scheme && lower && upper
}

// placeholder is a text that stands for a secret and is none: a variable, a gap to fill in, stars, a
// path, a type.
var placeholder = regexp.MustCompile(`(?is)^(?:[*•.x_…-]*|0x.*|[<\[{(+/.~&].*|.*(?:\$\{|\{\{|\$\(|\[redacted: ).*|\$[a-z][\w.-]*%?|[%@:*!][a-z][a-z_.-]*%?|your.*` +
	`|none|null|true|false|undefined|string|password|required|optional|example|changeme)$`)
