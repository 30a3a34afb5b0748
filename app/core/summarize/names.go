package summarize

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"bobbin/app/core"
)

const nameBytes = 300 // of a path; a longer word is none

// names takes the file paths and URLs of a line. It goes word by word, so that
// the expressions below only ever see short text.
func (s *scan) names(line string) {
	if s.full(files) && s.full(urls) || !strings.ContainsAny(line, `./\:`) && !strings.Contains(line, "file") {
		return
	}
	line = withoutMarks(s.quoted(line))
	words := strings.FieldsFunc(line, endsName)
	requested := false // the word before is a request's method
	for i, w := range words {
		if at := strings.Index(w, "://"); at > 0 {
			s.url(w, at)
			continue
		}
		if i+1 < len(words) && isBroken(w, words[i+1]) {
			words[i+1] = w + " " + words[i+1]
			continue
		}
		if strings.HasPrefix(w, "www.") && strings.Count(w, ".") > 1 {
			s.take(urls, strings.TrimRight(w, ".,;:!?)"))
			continue
		}
		if !requested && !s.full(files) {
			s.paths(w)
		}
		requested = isMethod(w)
	}
}

// withoutMarks takes off what git puts before the paths in a difference, and joins
// Windows' own folders whose names have blanks.
func withoutMarks(line string) string {
	for _, mark := range []string{"--- a/", "+++ b/"} {
		if rest, ok := strings.CutPrefix(line, mark); ok {
			return rest
		}
	}
	if rest, ok := strings.CutPrefix(line, "diff --git a/"); ok {
		return core.Clip(rest, strings.IndexByte(rest+" ", ' '))
	}
	if strings.Contains(line, `:\Program Files`) {
		line = strings.NewReplacer(`:\Program Files (x86)\`, `:\`+programFiles86, `:\Program Files\`, `:\`+programFiles).Replace(line)
	}
	return line
}

// isBroken reports whether a path of Windows goes on behind the blank after it:
// D:\My Files\a.txt.
func isBroken(w, next string) bool {
	return windowsPath.MatchString(w) && !strings.HasSuffix(w, `\`) && !fileName.MatchString(w[strings.LastIndexByte(w, '\\')+1:]) &&
		strings.IndexByte(next, '\\') > 0 && next[0] != '.' && !windowsPath.MatchString(next) && !strings.ContainsAny(w[len(w)-1:], ".,;:!?)")
}

// Stand-ins for names with blanks, while a line is split at its blanks.
const (
	programFiles   = "\x01"
	programFiles86 = "\x02"
)

// quoted takes the paths with blanks that stand in quotes, and returns the line
// without them.
func (s *scan) quoted(line string) string {
	if !strings.ContainsAny(line, "\"'`") || !strings.ContainsAny(line, `/\`) {
		return line
	}
	for _, quote := range []string{`"`, "'", "`"} {
		parts := strings.Split(line, quote)
		for i := 1; i+1 < len(parts); i += 2 {
			p := parts[i]
			if !strings.Contains(p, " ") || len(p) > nameBytes || s.full(files) || !isSpacedPath(p) {
				continue
			}
			s.take(files, unescape(p))
			parts[i] = ""
		}
		line = strings.Join(parts, quote)
	}
	return line
}

// isSpacedPath tells a path with blanks in it from a command or a sentence with a
// path: its last word has no separator, and only one of the others begins a path.
func isSpacedPath(p string) bool {
	if windowsPath.MatchString(p) && !strings.Contains(p[2:], `:\`) {
		return true
	}
	last := p[strings.LastIndexByte(p, ' ')+1:]
	m := fileName.FindStringSubmatch(strings.TrimLeft(last, "("))
	if m == nil && !strings.HasPrefix(last, "(") || strings.ContainsAny(last, `/\`) || !strings.Contains(p, "/") {
		return false
	}
	ext := strings.ToLower(last[strings.LastIndexByte(last, '.')+1:])
	for w := range strings.FieldsSeq(p[1:]) {
		if strings.ContainsAny(w[:1], "-/~<>|$") {
			return false
		}
	}
	return isFileExtension(ext) && !strings.ContainsAny(p, "<>|;=:")
}

// isMethod reports whether a word says that the next one is the path of a request.
func isMethod(w string) bool {
	switch w {
	case "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS":
		return true
	default:
		return false
	}
}

// paths takes the file paths of a word.
func (s *scan) paths(word string) {
	if !strings.ContainsAny(word, `./\`) && !isKnownFile(trimPath(word)) {
		return
	}
	ends := endsPath
	if strings.HasPrefix(word, `\\`) {
		ends = func(r rune) bool { return r != '$' && endsPath(r) } // a share
	}
	for i := 0; i < len(word); {
		n := strings.IndexFunc(word[i:], ends)
		if n < 0 {
			n = len(word) - i
		}
		p := trimPath(word[i : i+n])
		called := i+n < len(word) && word[i+n] == '('
		folder := !strings.Contains(strings.TrimLeft(p, "."), ".")
		if (!s.brief || !folder) && isPath(p) && (!called || strings.ContainsAny(p, `/\`)) && (!s.tool || !isLibrary(p)) {
			s.take(files, tidy(p))
		}
		_, size := utf8.DecodeRuneInString(word[i+n:])
		i += n + max(size, 1)
	}
}

func endsName(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\"'`<>|“”‘’«»„。，、；：！？「」『』（）【】《》", r)
}

func endsPath(r rune) bool { return strings.ContainsRune("()[]{},;=!?&^$#%", r) }

// url takes the URL whose "://" is at i in w.
func (s *scan) url(w string, i int) {
	start := i
	for start > 0 && isSchemeByte(w[start-1]) {
		start--
	}
	if scheme := w[start:i]; scheme == "" || scheme == "file" || len(w) > 4*nameBytes {
		return
	}
	u := strings.TrimRight(w[start:], ".,;:!?*_")
	for _, pair := range []string{"()", "[]", "{}"} { // a bracket that only closes is the sentence's
		if strings.HasSuffix(u, pair[1:]) && strings.Count(u, pair[:1]) < strings.Count(u, pair[1:]) {
			u = strings.TrimRight(strings.TrimSuffix(u, pair[1:]), ".,;:!?")
		}
	}
	if len(u) > i-start+3 {
		s.take(urls, u)
	}
}

func isSchemeByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '+' || b == '-'
}

var (
	position     = regexp.MustCompile(`:\d+(?::\d+)?(?::in)?:?$`) // main.go:12:5
	unixPath     = regexp.MustCompile(`^(?:~|\.{1,2})?(?:/[^/\\:]+)+/?$`)
	relativePath = regexp.MustCompile(`^(?:[^/\\:]+[/\\])+[^/\\:]*\.([A-Za-z][A-Za-z0-9_]{0,9})$`)
	fileName     = regexp.MustCompile(`^[\p{L}\p{N}_.@+()-]*[\p{L}\p{N}_)]\.([A-Za-z][A-Za-z0-9]{0,9})$`)
	windowsPath  = regexp.MustCompile(`^(?:[A-Za-z]:[\\/]|\\\\)[^<>|*?"]+$`)
)

// trimPath takes off what a sentence, an emphasis or a compiler puts around a path.
func trimPath(w string) string {
	w = position.ReplaceAllString(strings.TrimRight(strings.Trim(w, "*_"), ".,;:!?*"), "")
	return strings.TrimRight(strings.TrimLeft(w, "+:"), ".,;:")
}

// tidy returns the path as it is shown: without the doubled backslashes of JSON, and
// without a separator at its end.
func tidy(path string) string {
	path = unescape(strings.NewReplacer(programFiles86, `Program Files (x86)\`, programFiles, `Program Files\`).Replace(path))
	if len(path) > 3 {
		path = strings.TrimRight(path, `/\`)
	}
	return path
}

// unescape undoes the doubled backslashes of a Windows path that stood in JSON.
func unescape(path string) string {
	if len(path) > 3 && path[1:4] == `:\\` {
		return strings.ReplaceAll(path, `\\`, `\`)
	}
	return path
}

// mayBePath reports whether a text that is called a path looks like one.
func mayBePath(text string) bool {
	return len(text) > 1 && !strings.Contains(text, "://") && strings.ContainsAny(text, `./\`) && strings.Trim(text, `./\`) != ""
}

// isPath reports whether the word is a path: absolute, relative to a folder with
// an extension, or a bare file name with a known extension.
func isPath(w string) bool {
	if len(w) < 3 || len(w) > nameBytes || !utf8.ValidString(w) || strings.Count(w, "*") > 4 {
		return false
	}
	switch {
	case windowsPath.MatchString(w):
		return len(w) > 3
	case unixPath.MatchString(w):
		return isUnixPath(w)
	case strings.ContainsAny(w, `/\`):
		return isRelativePath(w)
	}
	return isFileName(w)
}

// isUnixPath tells a path from a word with a slash before it: /help is a command.
func isUnixPath(w string) bool {
	if w[0] != '/' {
		return true
	}
	return strings.Count(strings.TrimRight(w, "/"), "/") > 1 || strings.Contains(w, ".") ||
		w == "/etc" || w == "/tmp" || w == "/var" || w == "/usr" || w == "/home" || w == "/opt"
}
