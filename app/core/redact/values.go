package redact

import (
	"strings"
	"unicode"
)

// Sizes of values, in bytes.
const (
	leastPassword = 4
	leastKey      = 6
	leastToken    = 8
	leastWords    = 24  // of a token without a digit
	mostValue     = 256 // of which is decided; longer ones are taken whole
)

// value is what follows a label.
type value struct {
	from, to  int // without quotes
	text      string
	separator string // "=", ":", ">", "|", " " of an option, "is"
	quoted    bool
	tight     bool // nothing stands between label, separator and value
	last      bool // it ends the line
	first     bool // the label begins the line
}

// labeled adds the secret behind a label from i to end, if there is one, and returns
// where to go on.
func (f *finder) labeled(i, end int, l label, ln line) int {
	v, ok := f.valueAfter(i, end, ln)
	if !ok {
		return end
	}
	if l.auth {
		v = f.withoutScheme(v)
	}
	if !l.secret(v) {
		return end
	}
	if v.to-v.from >= mostValue-8 { // only its beginning was looked at
		v.to = f.wordEnd(v.to)
	}
	f.add(v.from, v.to, l.kind)
	return v.to
}

// wordEnd returns where the word ends that i is in, or right behind.
func (f *finder) wordEnd(i int) int {
	for n, r := range f.text[i:] {
		if isEnd(r) || r == '\\' {
			return i + n
		}
	}
	return len(f.text)
}

// valueAfter returns the value of the label from i to end; false = there is none.
func (f *finder) valueAfter(i, end int, ln line) (value, bool) {
	v := value{first: i == 0 || strings.TrimRight(f.text[lineStart(f.text, i):i], " \t\"'-*") == ""}
	at := f.separator(i, end, ln, &v)
	if i > 0 && v.separator == ":" && (f.text[i-1] == ':' || f.text[i-1] == '/') { // arn:aws:…:secret:name, /etc/passwd: …
		return v, false
	}
	if at < 0 || at >= len(f.text) || markerAt(f.text, at) > 0 {
		return v, false
	}
	f.quoteOrWord(at, &v)
	if v.separator == ">" && v.from > at { // <secret>, in quotes
		return v, false
	}
	if v.separator == ":" && !v.quoted {
		f.typed(&v)
	}
	v.text = f.text[v.from:v.to]
	rest := strings.TrimLeft(f.ahead(v.to, 8), " \t\r\"'`,;")
	v.last = rest == "" && v.to+8 >= len(f.text) || strings.HasPrefix(rest, "\n") || strings.HasPrefix(rest, `\n`)
	return v, v.text != "" && !strings.Contains(v.text, hidden)
}

// lineStart returns where the line of i begins, or a place shortly before i.
func lineStart(text string, i int) int {
	from := max(0, i-16)
	return from + strings.LastIndexByte(text[from:i], '\n') + 1
}

// separator reads what stands between the label from i to end and its value, and
// returns where the value begins; negative = there is none.
func (f *finder) separator(i, end int, ln line, v *value) int {
	closed := end
	for closed < len(f.text) && closed < end+4 && strings.IndexByte("\"'`*])\\", f.text[closed]) >= 0 {
		closed++
	}
	at := blanks(f.text, closed, 16)
	rest := f.text[at:]
	n, name := assignment(rest)
	apart := at > closed
	switch {
	case n > 0:
	case strings.HasPrefix(rest, ">") && i > 0 && f.text[i-1] == '<', strings.HasPrefix(rest, "|") && apart:
		n, name = 1, rest[:1]
	case apart && (strings.HasPrefix(f.text[i:end], "--") || ln.login && closed == end):
		name = " "
	case apart:
		if n, name = copula(rest), "is"; n == 0 {
			return -1
		}
	default:
		return -1
	}
	v.separator = name
	from := blanks(f.text, at+n, 16)
	v.tight = at == end && from == at+n
	if name == ":" { // bold
		from = blanks(f.text, while(f.text, from, func(b byte) bool { return b == '*' }), 2)
	}
	return from
}

// assignment returns the length of the sign that text begins with, and its name.
func assignment(text string) (n int, name string) {
	for sign := range strings.FieldsSeq(":= => === == = ： :") {
		if strings.HasPrefix(text, sign) {
			if sign == "：" || sign == ":" {
				return len(sign), ":"
			}
			return len(sign), "="
		}
	}
	return 0, ""
}

// copula returns the length of the verb that text begins with: "the password is …".
func copula(text string) int {
	for verb := range strings.FieldsSeq("is was ist lautet war est es é") {
		if strings.HasPrefix(text, verb+" ") {
			return len(verb)
		}
		if strings.HasPrefix(text, verb+": ") {
			return len(verb) + 1
		}
	}
	return 0
}

// quoteOrWord reads the value that begins at i: between quotes, or a word. There may
// be none.
func (f *finder) quoteOrWord(i int, v *value) {
	rest := f.ahead(i, mostValue)
	start := 0
	if len(rest) > 1 && isAlpha(rest[0]) && strings.IndexByte(`"'`, rest[1]) >= 0 { // f"…", b'…'
		start = 1
	}
	for start < len(rest) && rest[start] == '\\' && start < 4 {
		start++
	}
	if start < len(rest) && strings.IndexByte("\"'`", rest[start]) >= 0 {
		from := start + 1
		if closes(rest[from:]) { // "password=" + name
			return
		}
		if n := quoteEnd(rest[from:], rest[:from]); n >= 0 {
			v.from, v.to, v.quoted = i+from, i+from+n, true
			return
		}
		v.from, v.to = i+from, i+from+unquotedEnd(rest[from:])
		return
	}
	v.from, v.to = i, i+unquotedEnd(rest)
}

// closes reports whether what follows a quote shows that it closed a text.
func closes(text string) bool {
	i := blanks(text, 0, 4)
	return i == len(text) || strings.IndexByte("+,;)]}\n", text[i]) >= 0
}

// quoteEnd returns where the quoted text ends that open opened; negative = nowhere.
func quoteEnd(text, open string) int {
	quote := open[len(open)-1]
	escaped := strings.HasSuffix(open[:len(open)-1], `\`)
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\n':
			return -1
		case text[i] == '\\' && !escaped:
			i++
		case text[i] == quote:
			return len(strings.TrimRight(text[:i], `\`))
		}
	}
	return -1
}

// unquotedEnd returns where the word ends that text begins with.
func unquotedEnd(text string) int {
	end := len(text)
	for i, r := range text {
		if isEnd(r) || r == '\\' && i+1 < len(text) && strings.IndexByte(`nrt"'`, text[i+1]) >= 0 ||
			(r == '&' || r == ';' || r == ',') && assigns(text[i+1:]) {
			end = i
			break
		}
	}
	return len(strings.TrimRight(text[:end], ",;.)]}:"))
}

// isEnd reports whether the character ends every word.
func isEnd(r rune) bool {
	switch r {
	case '"', '\'', '`', '<', '>', '|', '，', '。', '；', '、', '）', '」', '』', '】':
		return true
	default:
		return r <= ' ' || r >= 0x7f && (unicode.IsSpace(r) || unicode.IsControl(r))
	}
}

// assigns reports whether the text goes on with another assignment, or ends.
func assigns(text string) bool {
	i := blanks(text, 0, 4)
	end := while(text[:min(len(text), i+64)], i, isWord)
	return end == len(text) || end > i && (text[end] == '=' || text[end] == ':')
}

// typed goes on behind a type: password: str = "…".
func (f *finder) typed(v *value) {
	if !keyword(f.text[v.from:v.to]) {
		return
	}
	at := blanks(f.text, v.to, 4)
	if at < len(f.text) && f.text[at] == '=' {
		v.separator = "="
		f.quoteOrWord(blanks(f.text, at+1, 4), v)
	}
}

// withoutScheme takes the scheme off the value of an Authorization header.
func (f *finder) withoutScheme(v value) value {
	scheme, rest, ok := strings.Cut(v.text, " ")
	if !ok && !v.quoted { // the word ended at the blank
		from := blanks(f.text, v.to, 2)
		if from == v.to {
			return v
		}
		to := from + unquotedEnd(f.ahead(from, mostValue))
		rest, ok = f.text[from:to], true
	}
	switch strings.ToLower(scheme) {
	case "bearer", "basic", "token", "digest", "apikey", "api-key", "key":
	default:
		return v
	}
	if !ok || rest == "" || strings.Contains(rest, hidden) {
		return value{}
	}
	at := strings.Index(f.text[v.from:], rest) + v.from
	return value{from: at, to: at + len(rest), text: rest, separator: "scheme", quoted: v.quoted}
}
