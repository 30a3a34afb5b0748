package summarize

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const nameBytes = 300 // of a path; a longer word is none

// names takes the file paths and URLs of a line. It goes word by word, so that
// the expressions below only ever see short text.
func (s *scan) names(line string) {
	if s.full(files) && s.full(urls) || !strings.ContainsAny(line, `./\:`) {
		return
	}
	for _, w := range strings.FieldsFunc(line, endsName) {
		if i := strings.Index(w, "://"); i > 0 {
			s.url(w, i)
			continue
		}
		if !s.full(files) && strings.ContainsAny(w, `./\`) {
			s.paths(w)
		}
	}
}

// paths takes the file paths of a word.
func (s *scan) paths(word string) {
	for _, p := range strings.FieldsFunc(word, endsPath) {
		if p = trimPath(p); isPath(p) {
			s.take(files, unescape(p))
		}
	}
}

func endsName(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\"'`<>|“”‘’«»。，、；", r)
}

func endsPath(r rune) bool { return strings.ContainsRune("()[]{},;=*!?&^$#%", r) }

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
	position     = regexp.MustCompile(`:\d+(?::\d+)?:?$`) // main.go:12:5
	unixPath     = regexp.MustCompile(`^(?:~|\.{1,2})?(?:/[^/\\:]+)+/?$`)
	relativePath = regexp.MustCompile(`^(?:[^/\\:]+[/\\])+[^/\\:]+\.[A-Za-z][A-Za-z0-9_]{0,9}$`)
	fileName     = regexp.MustCompile(`^[\p{L}\p{N}_.@+-]*[\p{L}\p{N}_]\.([A-Za-z][A-Za-z0-9]{0,9})$`)
)

// trimPath takes off what a sentence or a compiler puts around a path.
func trimPath(w string) string {
	w = position.ReplaceAllString(strings.TrimRight(w, ".,;:!?"), "")
	return strings.TrimRight(strings.TrimLeft(w, "+:"), ".,;:")
}

// unescape undoes the doubled backslashes of a Windows path that stood in JSON.
func unescape(path string) string {
	if len(path) > 3 && path[1:4] == `:\\` {
		return strings.ReplaceAll(path, `\\`, `\`)
	}
	return path
}

// isPath reports whether the word is a path: absolute, relative to a folder with
// an extension, or a bare file name with a known extension.
func isPath(w string) bool {
	if len(w) < 3 || len(w) > nameBytes || !utf8.ValidString(w) {
		return false
	}
	switch {
	case windowsPath.MatchString(w):
		return len(w) > 3
	case unixPath.MatchString(w):
		return isUnixPath(w)
	case strings.ContainsAny(w, `/\`):
		return relativePath.MatchString(w) && !strings.HasPrefix(w, "//")
	}
	m := fileName.FindStringSubmatch(w)
	return m != nil && isFileExtension(strings.ToLower(m[1])) && !isProduct(strings.ToLower(w))
}

// isUnixPath tells a path from a word with a slash before it: /help is a command.
func isUnixPath(w string) bool {
	if w[0] != '/' {
		return true
	}
	return strings.Count(strings.TrimRight(w, "/"), "/") > 1 || strings.Contains(w, ".") ||
		w == "/etc" || w == "/tmp" || w == "/var" || w == "/usr" || w == "/home" || w == "/opt"
}

func isFileExtension(ext string) bool {
	const known = " go mod sum py pyi ipynb js mjs cjs ts tsx jsx vue svelte java kt kts scala groovy gradle rb rs c h cc cpp cxx hpp cs fs php" +
		" swift mm sh bash zsh fish ps1 bat cmd sql md rst txt tex adoc json jsonl json5 yaml yml toml ini cfg conf env properties xml xsd html htm css" +
		" scss sass less csv tsv parquet log lock proto graphql tf tfvars hcl nix lua pl jl ex exs erl hs clj dart zig asm diff patch" +
		" pdf doc docx odt xls xlsx ods ppt pptx png jpg jpeg gif svg webp ico mp3 mp4 wav zip tar gz tgz bz2 xz zst 7z jar war whl deb rpm exe dll so" +
		" db sqlite sqlite3 pem crt tmpl tpl j2 wasm bin dat bak "
	return strings.Contains(known, " "+ext+" ")
}

// isProduct reports whether the name is a library's or a variable's, not a file's.
func isProduct(name string) bool {
	switch name {
	case "node.js", "vue.js", "next.js", "nuxt.js", "react.js", "express.js", "three.js", "d3.js", "ember.js", "backbone.js", "chart.js", "p5.js", "nest.js", "process.env":
		return true
	default:
		return false
	}
}

var (
	// machineError is an error as programs write it, wherever it stands.
	machineError = regexp.MustCompile(`(?i:\b(?:error|err|exception|fatal|panic|failure)s?(?:\[\w+\])?\s*[:#=(]|\berror (?:code )?[A-Z]{0,4}\d` +
		`|\btraceback \(most recent|\bcore dumped\b|\bsegmentation fault\b)|\b[A-Z]\w*(?:Error|Exception)\b|\bE\d{3,5}\b|\bERR_[A-Z_]+\b` +
		`|\bE(?:NOENT|ACCES|PERM|EXIST|CONNREFUSED|CONNRESET|CONNABORTED|TIMEDOUT|ADDRINUSE|PIPE|NOTFOUND|AI_AGAIN|ISDIR|NOTDIR|NOTEMPTY|MFILE|NOSPC|INVAL|BUSY|AGAIN|HOSTUNREACH|NOMEM|IO|LIFECYCLE|RESOLVE|INTEGRITY)\b`)
	// spokenError is a word that means one in a tool's output.
	spokenError = regexp.MustCompile(`(?i)\b(?:error|exception|panic|traceback|fatal)\b`)
	// noError is a line that says that there is none, a line of source code, or a
	// frame of a trace.
	noError = regexp.MustCompile(`(?i)\b(?:no|0|zero|without(?: any)?) (?:error|exception)s?\b` +
		`|"?\b(?:error|err|exception)s?"?\s*[:=]+\s*(?:null|nil|none|0|false|""|\[\]|\{\})(?:\W|$)|\berr\s*[:!]?=|^\s*at \S+\(` +
		`|(?-i:^\s*(?:except|raise|throw|catch|class|import|from|return|def|func|case|if|type|var|const|\})[\s(])`)
)

// isErrorLine reports whether the line is an error. People speak of errors too:
// outside of tool results it must look like a program's.
func isErrorLine(line string, tool bool) bool {
	line = head(line, 400)
	if !mayBeError(line) || noError.MatchString(line) {
		return false
	}
	return machineError.MatchString(line) || tool && spokenError.MatchString(line)
}

// mayBeError is a cheap test that most lines fail.
func mayBeError(line string) bool {
	for _, part := range []string{"rr", "RR", "xc", "XC", "ani", "ANI", "ata", "ATA", "race", "RACE", "ailure", "E", "ault", "ump"} {
		if strings.Contains(line, part) {
			return true
		}
	}
	return false
}
