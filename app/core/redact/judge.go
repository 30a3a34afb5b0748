package redact

import (
	"strings"
	"unicode/utf8"
)

// hidden is in what was redacted before.
const hidden = "[redacted"

// secret reports whether the value is one that the label speaks of.
func (l label) secret(v value) bool {
	t := v.text
	if len(t) < leastPassword || strings.Contains(t, "://") || placeholder(t) || path(t) {
		return false
	}
	if !v.quoted && expression(t) || l.weak && !v.quoted && !v.tight || l.weak && v.separator == ":" && !v.quoted {
		return false
	}
	switch {
	case v.separator == "scheme":
		return len(t) >= leastKey && !plain(t)
	case l.chosen && (v.separator == "is" || v.separator == "|"):
		return mixed(traitsOf(t)) && len(t) >= leastKey && !traitsOf(t).blank
	case l.chosen:
		return l.chosenBy(v)
	default:
		return l.machineMade(v)
	}
}

// chosenBy reports whether the value is a secret that a person chose.
func (l label) chosenBy(v value) bool {
	t := traitsOf(v.text)
	switch {
	case t.blank:
		return l.phrase(v.text)
	case keyword(v.text):
		return false
	case t.letters == 0 && t.symbols == 0:
		return t.digits >= leastPassword && (l.kind == password || t.digits >= leastToken)
	case mixed(t):
		return true
	case v.quoted:
		return true
	case l.kind == secret: // name-of-a-secret
		return v.separator == "=" && v.tight && !strings.ContainsAny(v.text, "-_.")
	case aboutSecrets(v.text), strings.Contains(v.text, "_"):
		return false
	case v.separator == "=" || v.separator == " " || v.separator == ">":
		return v.tight || v.last || v.separator == " "
	default:
		return v.first && v.last && len(v.text) >= leastKey
	}
}

// phrase reports whether a quoted text with blanks in it is a secret: a word in it
// looks like one. Others are sentences about passwords.
func (l label) phrase(text string) bool {
	if l.kind == secret && !strings.ContainsAny(text, ".?!,:") {
		return true
	}
	for w := range strings.FieldsSeq(text) {
		if t := traitsOf(w); t.letters > 0 && len(w) > leastPassword && (t.digits > 0 || strings.ContainsAny(w, "$#@%^&*")) {
			return true
		}
	}
	return false
}

// mixed reports whether letters stand with digits or with symbols.
func mixed(t traits) bool { return t.letters > 0 && (t.digits > 0 || t.symbols > 0) }

// machineMade reports whether the value looks like a token or a key: letters mixed
// with digits, or one long word without any meaning.
func (l label) machineMade(v value) bool {
	t := traitsOf(v.text)
	if t.blank || !all(v.text, isToken) || t.letters == 0 {
		return false
	}
	if t.digits == 0 {
		return len(v.text) >= leastWords && t.run == len(v.text) && (v.quoted || v.tight && t.run >= leastWords+8)
	}
	if number(v.text) || (!v.quoted || l.weak) && named(v.text, t) {
		return false
	}
	if l.weak || l.auth {
		return len(v.text) >= leastBearer && t.turns >= 3
	}
	if l.kind == apiKey || l.kind == privateKey {
		return len(v.text) >= leastKey && t.turns >= 1
	}
	turns := 2
	if v.quoted || v.separator != ":" {
		turns = 1
	}
	return len(v.text) >= leastToken && (t.turns >= turns || l.kind == password)
}

// number reports whether the text is one in hexadecimal.
func number(t string) bool { return strings.HasPrefix(t, "0x") && len(t) <= len("0x")+16 }

// named reports whether the text is the name of something in source code.
func named(text string, t traits) bool {
	if !dotted(text) {
		return false
	}
	return strings.Contains(text, ".") && t.turns < 6 || aboutSecrets(text) && 10*t.turns < 4*len(text)
}

// placeholder reports whether the text stands for a secret and is none: a variable,
// a gap to be filled, stars.
func placeholder(t string) bool {
	if t == "" || strings.Contains(t, hidden) || strings.Trim(t, "*•.xX_-…") == "" || all(t, isSame(t[0])) {
		return true
	}
	if strings.IndexByte("<[{(", t[0]) >= 0 || strings.HasPrefix(t, "&lt;") || strings.HasPrefix(t, "&#") || strings.HasPrefix(t, "&quot;") || strings.Contains(t, "${") || strings.Contains(t, "{{") || strings.Contains(t, "$(") {
		return true
	}
	if strings.IndexByte("$%@&:*!", t[0]) >= 0 { // $VAR, %VAR%, @field, &pointer, :symbol
		name := strings.TrimSuffix(t[1:], "%")
		return name != "" && isAlpha(name[0]) && all(name, func(b byte) bool { return isWord(b) || b == '.' }) && (t[0] == '$' || !hasDigit(name))
	}
	if strings.Contains(t, "{") && strings.Contains(t, "}") && traitsOf(t).digits == 0 { // f"{token}"
		return true
	}
	low := strings.ToLower(t[:min(len(t), 16)])
	return strings.HasPrefix(low, "your") || strings.HasPrefix(low, "<your") || strings.HasPrefix(low, "my-") && !hasDigit(t) ||
		strings.HasPrefix(low, "example") || low == "redacted" || low == "changeme" || low == "change-me"
}

func isSame(b byte) func(byte) bool { return func(c byte) bool { return b == c } }

// path reports whether the text is a path without anything odd in it.
func path(t string) bool {
	rest := t
	for _, begin := range []string{"./", "../", "~/", "/"} {
		if r, ok := strings.CutPrefix(t, begin); ok {
			rest = r
			break
		}
	}
	windows := len(t) > 2 && isAlpha(t[0]) && t[1] == ':' && strings.IndexByte(`\/`, t[2]) >= 0
	return windows || rest != t && all(rest, func(b byte) bool { return isWord(b) || b == '/' || b == '.' })
}

// expression reports whether an unquoted text is source code.
func expression(t string) bool {
	if !isAlpha(t[0]) && t[0] != '_' {
		return strings.Contains(t, "->")
	}
	end := while(t, 0, func(b byte) bool { return isAlnum(b) || b == '_' || b == '.' })
	switch {
	case end == len(t):
		return strings.Contains(t, ".") && dotted(t) && !hasDigit(t)
	case t[end] == '(' || t[end] == '[' || t[end] == '{':
		return true
	default:
		return strings.HasPrefix(t[end:], "->") || strings.HasPrefix(t[end:], "::") || strings.HasPrefix(t[end:], "?.")
	}
}

// dotted reports whether the text is names with dots between them.
func dotted(t string) bool {
	for part := range strings.SplitSeq(t, ".") {
		if part == "" || !isAlpha(part[0]) && part[0] != '_' || !all(part, isWord) {
			return false
		}
	}
	return true
}

// plain reports whether the text is one lower-case word, as examples have it.
func plain(t string) bool { return all(t, isLower) && len(t) < leastBearer || keyword(t) }

// aboutSecrets reports whether a name holds such a word: a variable, a field, a label.
func aboutSecrets(t string) bool {
	low := strings.ToLower(t)
	for w := range strings.FieldsSeq("pass pwd secret token credential wort key cert") {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// keywords are what code and prose say after "password" and do not mean as one.
const keywords = " true false null none nil undefined string str text bytes byte char varchar bool boolean int integer number float object any unknown" +
	" required optional nullable invalid incorrect wrong missing empty expired hidden unchanged unset set given correct valid changed ok yes no on off" +
	" not is the and or for from with must should has was are can will this that here see enter type use value input field form data self this new old" +
	" param params option options args arg var let const return password passwort passwd token secret wachtwoord parola heslo hasło lösenord contraseña" +
	" contrasena senha kennwort пароль 密码 密碼 パスワード prompt stdin file env vault default disabled enabled never always basic bearer" +
	" current-password new-password optional[str] secretstr option<string> "

// keyword reports whether the text is, or begins with, such a word.
func keyword(t string) bool {
	low := strings.ToLower(strings.TrimRight(t, "?!.:;,*"))
	if n := strings.IndexAny(low, "|,"); n > 0 { // required|min:8
		low = low[:n]
	}
	return utf8.ValidString(low) && strings.Contains(keywords, " "+low+" ")
}
