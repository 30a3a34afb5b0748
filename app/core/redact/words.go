package redact

import (
	"strings"
	"unicode/utf8"
)

// words adds what is known by its shape or by the label before it. It goes from word
// to word once.
func (f *finder) words() {
	var l line
	for i := 0; i < len(f.text); {
		b := f.text[i]
		switch {
		case b == '[':
			i += max(markerAt(f.text, i), 1)
		case isWord(b):
			i = f.word(i, &l)
		case b == '$':
			i = max(f.shapeAt(i), i+1)
		case b >= utf8.RuneSelf:
			i = f.foreign(i)
		default:
			if b == '\n' {
				l = line{}
			}
			i++
		}
	}
}

// line is what is known of the line so far.
type line struct {
	program string // the command that was seen
	login   bool   // the word "login": of a .netrc
	secret  int    // where a secret ends whose words say nothing
}

// word looks at the word that begins at i and returns where to go on.
func (f *finder) word(i int, l *line) int {
	end := while(f.text, i, isWord)
	if to := f.shapeIn(i, end); to > 0 {
		return to
	}
	if n := f.foreignAt(f.text, i); n > 0 {
		return f.labeled(i, i+n, label{kind: password, chosen: true}, *l)
	}
	word := f.text[i:end]
	if i >= l.secret {
		l.see(word)
	}
	if to := f.argument(i, end, *l); to > end {
		l.secret = to
	}
	if strings.EqualFold(word, "bearer") {
		return f.bearer(end)
	}
	if lb, ok := f.labelOf(word); ok {
		return f.labeled(i, end, lb, *l)
	}
	if lb, ok := spokenKey(f.text, i, word); ok {
		return f.labeled(i, end, lb, *l)
	}
	return end
}

// shapeIn adds the key in the word from i to end and returns its end; 0 = there is
// none. A key begins with its word, or behind an escape that looks like the word's
// beginning: \n, %3D, the end of a color.
func (f *finder) shapeIn(i, end int) int {
	starts := [...]int{i, i, i}
	if i > 0 && f.text[i-1] == '\\' {
		starts[1] = i + 1
	}
	if i > 0 && f.text[i-1] == '%' {
		starts[1] = i + 2
	}
	if i > 0 && (f.text[i-1] == '[' || f.text[i-1] == ';') {
		if n := while(f.text, i, isDigit); n < end && f.text[n] == 'm' {
			starts[2] = n + 1
		}
	}
	for n, at := range starts {
		if at >= end || n > 0 && at == i {
			continue
		}
		if to := f.shapeAt(at); to > at {
			return to
		}
	}
	return 0
}

// foreign looks at the character that begins at i, which is not ASCII.
func (f *finder) foreign(i int) int {
	if n := f.foreignAt(f.text, i); n > 0 {
		return f.labeled(i, i+n, label{kind: password, chosen: true}, line{})
	}
	_, size := utf8.DecodeRuneInString(f.text[i:])
	return i + size
}

// spokenKey reports whether the word at i is the "key" of "API key".
func spokenKey(text string, i int, word string) (label, bool) {
	if !strings.EqualFold(word, "key") || i == 0 || text[i-1] != ' ' {
		return label{}, false
	}
	before := text[max(0, i-len("encryption ")) : i-1]
	before = strings.ToLower(before[strings.LastIndexByte(before, ' ')+1:])
	switch before {
	case "api", "access", "secret", "encryption", "signing", "license":
		return label{kind: apiKey}, true
	case "private":
		return label{kind: privateKey}, true
	default:
		return label{}, false
	}
}

// leastBearer is the fewest bytes of a token that is introduced by nothing but
// "Bearer": what a sentence goes on with is shorter or has no digit.
const leastBearer = 16

// bearer adds the token after the word "Bearer" that ended at i.
func (f *finder) bearer(i int) int {
	from := blanks(f.text, i, 2)
	to := while(f.text, from, isToken)
	to = from + len(strings.TrimRight(f.text[from:to], ".:,"))
	if v := f.text[from:to]; from > i && len(v) >= leastBearer && hasDigit(v) && !placeholder(v) {
		f.add(from, to, token)
		return to
	}
	return i
}

// see takes note of a word of the line.
func (l *line) see(word string) {
	switch word {
	case "curl", "wget", "http", "mysql", "mysqldump", "mysqladmin", "mariadb", "sshpass", "docker", "podman", "redis-cli", "mongosh", "ldapsearch":
		l.program = word
	case "login":
		l.login = true
	}
}

// argument adds the password of a command's option, from i to end, that says nothing
// by its name: curl -u user:password, mysql -ppassword. It returns where that ends.
func (f *finder) argument(i, end int, l line) int {
	option := f.text[i:end]
	if l.program == "" || option[0] != '-' {
		return end
	}
	to, size := end, 0
	switch {
	case isOption(option, "-u --user -a") && isOption(l.program, "curl wget http"):
		var value string
		value, to = f.next(end)
		if n := strings.IndexByte(value, ':'); n >= 0 {
			size = len(value) - n - 1
		}
	case option == "-p" && isOption(l.program, "sshpass docker podman mongosh"), option == "-a" && isOption(l.program, "redis-cli mongosh"), option == "-w" && l.program == "ldapsearch":
		var value string
		if value, to = f.next(end); !portOf(value) {
			size = len(value)
		}
	case strings.HasPrefix(option, "-p") && isOption(l.program, "mysql mysqldump mysqladmin mariadb sshpass"):
		to = i + unquotedEnd(f.ahead(i, mostValue))
		size = to - i - len("-p")
	}
	if size < leastPassword || placeholder(f.text[to-size:to]) {
		return end
	}
	f.add(to-size, to, password)
	return to
}

// isOption reports whether the word is one of those in the list.
func isOption(word, list string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

// next returns the argument after i, without quotes, and where it ends.
func (f *finder) next(i int) (value string, to int) {
	from := blanks(f.text, i, 4)
	if from == i {
		return "", i
	}
	if from < len(f.text) && strings.IndexByte(`"'`, f.text[from]) >= 0 {
		from++
	}
	to = from + unquotedEnd(f.ahead(from, mostValue))
	return f.text[from:to], to
}

// portOf reports whether an argument is a mapping of ports, as containers take them.
func portOf(v string) bool {
	return all(v, func(b byte) bool { return isDigit(b) || b == ':' || b == '.' || b == '/' })
}
