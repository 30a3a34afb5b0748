package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// shape is the format of a provider's keys.
type shape struct {
	prefix string          // several separated by blanks
	class  func(byte) bool // of the bytes after the prefix; nil = parts between dots
	min    int             // number of these bytes
	max    int             // 0 = no limit
	kind   kind
	check  func(body string) bool // nil = no further check
}

// shapes is the table. Lengths are slightly under those of real keys, as key formats
// change, where nothing else has that form.
//
//nolint:gochecknoglobals // a constant table
var shapes = []shape{
	{"sk-", isWord, 16, 0, apiKey, isModelKey}, // OpenAI, Anthropic, OpenRouter, DeepSeek …
	{"AKIA ASIA", isUpperOrDigit, 16, 16, apiKey, nil},
	{"AIza", isWord, 30, 0, apiKey, nil}, // Google
	{"ya29. dckr_pat_", isWord, 20, 0, token, nil},
	{"GOCSPX-", isWord, 20, 0, secret, nil},
	{"ghp_ gho_ ghu_ ghs_ ghr_", isAlnum, 20, 0, token, nil}, // GitHub
	{"github_pat_", isWord, 20, 0, token, hasDigit},
	{"glpat-", isWord, 16, 0, token, nil}, // GitLab
	{"glrt- gldt- glptt-", isWord, 16, 0, token, hasDigit},
	{"xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xapp-", isWord, 10, 0, token, hasDigit}, // Slack
	{"sk_live_ sk_test_ rk_live_ rk_test_", isAlnum, 10, 0, apiKey, nil},          // Stripe
	{"whsec_", isBase64, 16, 0, secret, hasDigit},
	{"npm_ hf_", isAlnum, 30, 0, token, nil}, // Hugging Face
	{"pypi-", isWord, 50, 0, token, nil},
	{"gsk_ xai- pplx-", isAlnum, 40, 0, apiKey, nil},
	{"r8_", isAlnum, 36, 0, apiKey, nil},
	{"nvapi-", isWord, 40, 0, apiKey, nil},
	{"tvly-", isWord, 20, 0, apiKey, hasDigit},
	{"SG.", nil, 50, 0, apiKey, nil},
	{"shpat_", isHex, 32, 0, token, nil}, // Shopify
	{"dop_v1_", isHex, 40, 0, token, nil},
	{"hvs.", isWord, 24, 0, token, hasDigit}, // Vault
	{"glsa_", isWord, 32, 0, token, nil},     // Grafana
	{"lin_api_", isAlnum, 32, 0, apiKey, nil},
	{"ntn_", isAlnum, 40, 0, token, nil}, // Notion
	{"bob_", isWord, 40, 43, apiKey, hasDigit},
	{"eyJ", nil, 20, 0, token, isJWT},
	{"AGE-SECRET-KEY-1", isUpperOrDigit, 50, 0, privateKey, nil},
	{"$2a$ $2b$ $2y$", isBcrypt, 50, 56, secret, nil}, // hashes of passwords
	{"$argon2id$", isBcrypt, 40, 300, secret, nil},
}

func isBcrypt(b byte) bool { return isBase64(b) || b == '$' || b == '.' || b == ',' }

// shapesByByte are the shapes by the first byte of their prefix.
//
//nolint:gochecknoglobals // a constant table
var shapesByByte = func() (table [256][]shape) {
	for _, s := range shapes {
		for prefix := range strings.FieldsSeq(s.prefix) {
			s.prefix = prefix
			table[prefix[0]] = append(table[prefix[0]], s)
		}
	}
	return table
}()

// maxParts is the largest number of parts that a token has between dots: an encrypted
// one has five.
const maxParts = 5

// bodyEnd returns where the body that begins at i ends. It reads every byte a bounded
// number of times, wherever bodies begin.
func (s shape) bodyEnd(text string, i int) int {
	if s.class != nil && s.max > 0 {
		return classEnd(text[:min(len(text), i+s.max+1)], i, s.class)
	}
	if s.class != nil {
		return classEnd(text, i, s.class)
	}
	for part := 1; ; part++ {
		i = classEnd(text, i, isWord)
		if part == maxParts || i+1 >= len(text) || text[i] != '.' || !isWord(text[i+1]) {
			return i
		}
		i++
	}
}

// isModelKey reports whether the body belongs to a key, not to a name such as a CSS class.
func isModelKey(body string) bool {
	if strings.HasPrefix(body, "ant-") || strings.HasPrefix(body, "proj-") || strings.HasPrefix(body, "or-v1-") || strings.HasPrefix(body, "svcacct-") {
		return true
	}
	longest := 0
	for part := range strings.FieldsFuncSeq(body, func(r rune) bool { return r == '_' || r == '-' }) {
		longest = max(longest, len(part))
	}
	return longest >= 20 || longest >= 10 && hasDigit(body)
}

// isJWT reports whether the body has the parts of a signed token, or the five of an
// encrypted one.
func isJWT(body string) bool {
	parts := strings.Split(body, ".")
	n := len(parts)
	return n >= 3 && len(parts[0]) >= 8 && len(parts[2]) >= 8 && (n == maxParts || strings.HasPrefix(parts[1], "eyJ"))
}

// shapeEnd adds the key that begins at i and returns its end; i = none.
func (f *finder) shapeEnd(i int) int {
	if i >= len(f.text) {
		return i
	}
	for _, s := range shapesByByte[f.text[i]] {
		if !strings.HasPrefix(f.text[i:], s.prefix) {
			continue
		}
		body := i + len(s.prefix)
		end := s.bodyEnd(f.text, body)
		for end > body && strings.IndexByte(".,-", f.text[end-1]) >= 0 { // of the sentence
			end--
		}
		n := end - body
		if n < s.min || s.max > 0 && (n > s.max || end < len(f.text) && isAlnum(f.text[end])) || s.check != nil && !s.check(f.text[body:end]) {
			continue
		}
		f.add(i, end, s.kind)
		if s.prefix == "AKIA" || s.prefix == "ASIA" {
			f.addSecretOfKey(end)
		}
		return end
	}
	return i
}

// keyDistance is how far behind an AWS key its secret may begin, in bytes.
const keyDistance = 200

// addSecretOfKey adds the secret of an AWS key that ended at i: forty base64
// characters in upper and lower case.
func (f *finder) addSecretOfKey(i int) {
	end := min(len(f.text), i+keyDistance)
	for i < end {
		from := i
		i = classEnd(f.text, i, func(b byte) bool { return isBase64(b) || isWord(b) })
		if n := strings.LastIndexByte(strings.TrimRight(f.text[from:i], "="), '='); n >= 0 { // of an assignment
			from += n + 1
		}
		if v := f.text[from:i]; len(v) == 40 && classEnd(v, 0, isBase64) == len(v) && strings.IndexFunc(v, unicode.IsUpper) >= 0 && strings.IndexFunc(v, unicode.IsLower) >= 0 && hasDigit(v) {
			f.add(from, i, secret)
			return
		}
		i++
	}
}

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
