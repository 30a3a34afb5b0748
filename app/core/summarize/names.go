package summarize

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"bobbin/app/core"
)

const nameBytes = 300 // max bytes of a path

// takeNames records the file paths and URLs of a line. It goes word by word, so that the
// regular expressions below read only short texts.
func (s *scan) takeNames(line string) {
	if s.isFull(files) && s.isFull(urls) || !strings.ContainsAny(line, `./\:`) && !strings.Contains(line, "file") {
		return
	}
	line = withoutMarks(s.takeQuotedPaths(line))
	words := strings.FieldsFunc(line, endsName)
	requested := false // the previous word is an HTTP method
	for i, w := range words {
		if at := strings.Index(w, "://"); at > 0 {
			s.takeURL(w, at)
			continue
		}
		if i+1 < len(words) && isBroken(w, words[i+1]) {
			words[i+1] = w + " " + words[i+1]
			continue
		}
		if strings.HasPrefix(w, "www.") && strings.Count(w, ".") > 1 {
			s.takeEntry(urls, strings.TrimRight(w, ".,;:!?)"))
			continue
		}
		if !requested && !s.isFull(files) {
			s.takePaths(w)
		}
		requested = isMethod(w)
	}
}

// withoutMarks removes the marks before the paths of a git diff, and joins the folders of
// Windows whose names have blanks.
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

// isBroken reports whether a Windows path continues after a blank: D:\My Files\a.txt.
func isBroken(w, next string) bool {
	return windowsPath.MatchString(w) && !strings.HasSuffix(w, `\`) && !fileName.MatchString(w[strings.LastIndexByte(w, '\\')+1:]) &&
		strings.IndexByte(next, '\\') > 0 && next[0] != '.' && !windowsPath.MatchString(next) && !strings.ContainsAny(w[len(w)-1:], ".,;:!?)")
}

// Placeholders for names with blanks, while a line is split at its blanks.
const (
	programFiles   = "\x01"
	programFiles86 = "\x02"
)

// takeQuotedPaths records the paths with blanks that are in quotes, and returns the line
// without them.
func (s *scan) takeQuotedPaths(line string) string {
	if !strings.ContainsAny(line, "\"'`") || !strings.ContainsAny(line, `/\`) {
		return line
	}
	for _, quote := range []string{`"`, "'", "`"} {
		parts := strings.Split(line, quote)
		for i := 1; i+1 < len(parts); i += 2 {
			p := parts[i]
			if !strings.Contains(p, " ") || len(p) > nameBytes || s.isFull(files) || !isSpacedPath(p) {
				continue
			}
			s.takeEntry(files, unescapePath(p))
			parts[i] = ""
		}
		line = strings.Join(parts, quote)
	}
	return line
}

// isSpacedPath reports whether the text is a path with blanks, not a command or a sentence
// with a path: its last word has no separator, and only its first word begins a path.
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

// isMethod reports whether the word is an HTTP method, which a request's path follows.
func isMethod(w string) bool {
	switch w {
	case "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS":
		return true
	default:
		return false
	}
}

// takePaths records the file paths of a word.
func (s *scan) takePaths(word string) {
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
		if (!s.filesOnly || !folder) && isPath(p) && (!called || strings.ContainsAny(p, `/\`)) && (!s.isTool || !isLibrary(p)) {
			s.takeEntry(files, tidyPath(p))
		}
		_, size := utf8.DecodeRuneInString(word[i+n:])
		i += n + max(size, 1)
	}
}

func endsName(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\"'`<>|“”‘’«»„。，、；：！？「」『』（）【】《》", r)
}

func endsPath(r rune) bool { return strings.ContainsRune("()[]{},;=!?&^$#%", r) }

// takeURL records the URL whose "://" is at i in w.
func (s *scan) takeURL(w string, i int) {
	start := i
	for start > 0 && isSchemeByte(w[start-1]) {
		start--
	}
	if scheme := w[start:i]; scheme == "" || scheme == "file" || len(w) > 4*nameBytes {
		return
	}
	u := strings.TrimRight(w[start:], ".,;:!?*_")
	for _, pair := range []string{"()", "[]", "{}"} { // a closing bracket without an opening one belongs to the sentence
		if strings.HasSuffix(u, pair[1:]) && strings.Count(u, pair[:1]) < strings.Count(u, pair[1:]) {
			u = strings.TrimRight(strings.TrimSuffix(u, pair[1:]), ".,;:!?")
		}
	}
	if len(u) > i-start+3 {
		s.takeEntry(urls, u)
	}
}

func isSchemeByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '+' || b == '-'
}

var (
	placeSuffix  = regexp.MustCompile(`:\d+(?::\d+)?(?::in)?:?$`) // main.go:12:5
	unixPath     = regexp.MustCompile(`^(?:~|\.{1,2})?(?:/[^/\\:]+)+/?$`)
	relativePath = regexp.MustCompile(`^(?:[^/\\:]+[/\\])+[^/\\:]*\.([A-Za-z][A-Za-z0-9_]{0,9})$`)
	fileName     = regexp.MustCompile(`^[\p{L}\p{N}_.@+()-]*[\p{L}\p{N}_)]\.([A-Za-z][A-Za-z0-9]{0,9})$`)
	windowsPath  = regexp.MustCompile(`^(?:[A-Za-z]:[\\/]|\\\\)[^<>|*?"]+$`)
)

// trimPath removes what a sentence, Markdown or a compiler puts around a path.
func trimPath(w string) string {
	w = placeSuffix.ReplaceAllString(strings.TrimRight(strings.Trim(w, "*_"), ".,;:!?*"), "")
	return strings.TrimRight(strings.TrimLeft(w, "+:"), ".,;:")
}

// tidyPath returns the path without the escaped backslashes of JSON and without a
// separator at its end.
func tidyPath(path string) string {
	path = unescapePath(strings.NewReplacer(programFiles86, `Program Files (x86)\`, programFiles, `Program Files\`).Replace(path))
	if len(path) > 3 {
		path = strings.TrimRight(path, `/\`)
	}
	return path
}

// unescapePath unescapes the backslashes of a Windows path that comes from JSON.
func unescapePath(path string) string {
	if len(path) > 3 && path[1:4] == `:\\` {
		return strings.ReplaceAll(path, `\\`, `\`)
	}
	return path
}

// mayBePath reports whether a text in a field for paths looks like one.
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

// isUnixPath reports whether an absolute path is more than a word with a slash: /help is a
// command.
func isUnixPath(w string) bool {
	if w[0] != '/' {
		return true
	}
	return strings.Count(strings.TrimRight(w, "/"), "/") > 1 || strings.Contains(w, ".") ||
		w == "/etc" || w == "/tmp" || w == "/var" || w == "/usr" || w == "/home" || w == "/opt"
}
