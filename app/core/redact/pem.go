package redact

import "strings"

// The first and last line of a key. Certificates and public keys are not secret.
const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
	pemKey   = "PRIVATE KEY" // RSA PRIVATE KEY, OPENSSH PRIVATE KEY, PGP PRIVATE KEY BLOCK
	pemDash  = "-----"
	pemName  = 64 // max bytes of a name with its dashes
)

// minLine is the min number of base64 characters in a full line of a key.
const minLine = 16

// shortLine is longer than the lines of a key that has line breaks.
const shortLine = 256

// maxLine bounds a line, in bytes; a whole key may stand on one.
const maxLine = 4_096

// findPrivateKeys adds keys in PEM, from their first line to their last. A key may be
// cut off: without a last line it ends with the base64, without a first one it begins
// with it.
func (f *finder) findPrivateKeys() {
	for i := 0; ; {
		n := strings.Index(f.text[i:], pemDash)
		if n < 0 {
			return
		}
		from := i + n
		i = from + len(pemDash)
		if end, ok := pemMarkerEnd(f.text, from, pemBegin); ok {
			if to, ok := pemBodyEnd(f.text, end); ok {
				f.add(from, to, privateKey)
				i = to
			}
			continue
		}
		if end, ok := pemMarkerEnd(f.text, from, pemEnd); ok {
			if start := pemTailStart(f.text, f.lastEnd(), from); start < from {
				f.add(start, end, privateKey)
			}
			i = end
		}
	}
}

// lastEnd returns where the last secret ends.
func (f *finder) lastEnd() int {
	if len(f.found) == 0 {
		return 0
	}
	return f.found[len(f.found)-1].to
}

// pemMarkerEnd returns where the line that begins at i ends, if it opens or closes a
// private key.
func pemMarkerEnd(text string, i int, opening string) (end int, ok bool) {
	if !strings.HasPrefix(text[i:], opening) {
		return i, false
	}
	name := text[i+len(opening) : min(len(text), i+len(opening)+pemName)]
	n := strings.Index(name, pemDash)
	if n < 0 || !strings.Contains(name[:n], pemKey) {
		return i, false
	}
	return i + len(opening) + n + len(pemDash), true
}

// pemBodyEnd returns where the key ends whose first line ended at i; false = it has
// no body.
func pemBodyEnd(text string, i int) (end int, ok bool) {
	end = i
	for short := false; i < len(text); {
		line, next := nextPEMLine(text, i)
		bare := strings.Trim(line, lineMarks)
		if n := strings.Index(line, pemEnd); n >= 0 {
			if to, closed := pemMarkerEnd(text, i+n, pemEnd); closed {
				return to, true
			}
			return end, ok
		}
		switch {
		case short && bare != "":
			return end, ok
		case len(bare) >= minLine && isKeyLine(line):
			end, ok = i+len(strings.TrimRight(line, lineMarks)), true
		case isKeyLine(line):
			short = true // the last line, or no key
		case bare != "" && !isKeyHeader(line):
			return end, ok
		}
		i = next
	}
	return end, ok
}

// nextPEMLine returns the line that begins at i, and the start of the next one. Lines end
// at line breaks and at escaped ones (\n).
func nextPEMLine(text string, i int) (line string, next int) {
	rest := text[i:min(len(text), i+maxLine)]
	n := strings.IndexAny(rest, "\n\\")
	switch {
	case n < 0:
		return rest, i + len(rest)
	case rest[n] == '\\' && n+1 < len(rest) && strings.IndexByte("nr", rest[n+1]) >= 0:
		return rest[:n], i + n + 2
	default:
		return rest[:n], i + n + 1
	}
}

// lineMarks are the characters around the lines of a key in source code, quotations, diffs
// and numbered listings.
const lineMarks = " \t\r\"'`,;+>|*#:→"

// isKeyLine reports whether the line is base64, numbered or not.
func isKeyLine(line string) bool {
	line = strings.Trim(line, lineMarks)
	if n := classEnd(line, 0, isDigit); n > 0 && n < len(line) && strings.IndexByte(lineMarks, line[n]) >= 0 {
		line = strings.Trim(line[n:], lineMarks)
	}
	return line != "" && areAll(line, isBase64)
}

// isKeyHeader reports whether the line is a header such as "Proc-Type: 4,ENCRYPTED", or a
// line number.
func isKeyHeader(line string) bool {
	name, _, ok := strings.Cut(strings.Trim(line, lineMarks), ": ")
	return ok && len(name) < 32 && strings.Contains(name, "-") && areAll(name, isWord) || areAll(strings.Trim(line, lineMarks), isDigit)
}

// pemTailStart returns the start of the base64 lines before i, the place of a last line
// without a first one; not before from.
func pemTailStart(text string, from, i int) int {
	first, start := from, i
	for end := i; end > first; {
		begin := previousPEMLine(text, max(first, end-shortLine), end)
		line := strings.TrimSuffix(strings.TrimSuffix(text[begin:end], "\n"), `\n`)
		bare := strings.Trim(line, lineMarks)
		switch {
		case bare == "" && end == i: // i begins a line
		case !isKeyLine(line) || len(bare) < minLine && start != i:
			return start
		default:
			start = begin
		}
		end = begin
	}
	return start
}

// previousPEMLine returns the start of the line before end: behind a line break, or an
// escaped one (\n); not before from.
func previousPEMLine(text string, from, end int) int {
	body := strings.TrimSuffix(strings.TrimSuffix(text[from:end], "\n"), `\n`)
	begin := strings.LastIndexByte(body, '\n') + 1
	if n := strings.LastIndex(body, `\n`); n >= begin {
		begin = n + len(`\n`)
	}
	return from + begin
}
