package redact

import "strings"

// The lines around a key. Certificates and public keys are not secret.
const (
	pemBegin = "-----BEGIN "
	pemEnd   = "-----END "
	pemKey   = "PRIVATE KEY" // RSA PRIVATE KEY, OPENSSH PRIVATE KEY, PGP PRIVATE KEY BLOCK
	pemDash  = "-----"
	pemName  = 64 // most bytes of a name with its dashes
)

// leastLine is the fewest base64 characters that a whole line of a key has.
const leastLine = 16

// shortLine is more than the lines of a key have that are lines.
const shortLine = 256

// longestLine is where a line ends that has no end; a key on one line has one.
const longestLine = 4_096

// privateKeys adds keys in PEM, from their first line to their last; to where the
// base64 ends, if there is no last line, and from where it begins, if there is no
// first one: a key may be cut off.
func (f *finder) privateKeys() {
	for i := 0; ; {
		n := strings.Index(f.text[i:], pemDash)
		if n < 0 {
			return
		}
		from := i + n
		i = from + len(pemDash)
		if end, ok := pemLine(f.text, from, pemBegin); ok {
			if to, ok := pemBody(f.text, end); ok {
				f.add(from, to, privateKey)
				i = to
			}
			continue
		}
		if end, ok := pemLine(f.text, from, pemEnd); ok {
			if start := pemTail(f.text, f.covered(), from); start < from {
				f.add(start, end, privateKey)
			}
			i = end
		}
	}
}

// covered returns where the last secret ends.
func (f *finder) covered() int {
	if len(f.found) == 0 {
		return 0
	}
	return f.found[len(f.found)-1].to
}

// pemLine returns where the line that begins at i ends, if it opens or closes a
// private key.
func pemLine(text string, i int, opening string) (end int, ok bool) {
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

// pemBody returns where the key ends whose first line ended at i; false = nothing
// of it is there.
func pemBody(text string, i int) (end int, ok bool) {
	end = i
	for short := false; i < len(text); {
		line, next := pemNext(text, i)
		bare := strings.Trim(line, lineMarks)
		if n := strings.Index(line, pemEnd); n >= 0 {
			if to, closed := pemLine(text, i+n, pemEnd); closed {
				return to, true
			}
			return end, ok
		}
		switch {
		case short && bare != "":
			return end, ok
		case len(bare) >= leastLine && isKeyLine(line):
			end, ok = i+len(strings.TrimRight(line, lineMarks)), true
		case isKeyLine(line):
			short = true // the last one, or no key at all
		case bare != "" && !isKeyHeader(line):
			return end, ok
		}
		i = next
	}
	return end, ok
}

// pemNext returns the line that begins at i, and where the next one begins. Lines end
// at line breaks, and at those that are written \n.
func pemNext(text string, i int) (line string, next int) {
	rest := text[i:min(len(text), i+longestLine)]
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

// lineMarks stand around the lines of a key in source code, quotations, differences
// and listings with line numbers.
const lineMarks = " \t\r\"'`,;+>|*#:→"

// isKeyLine reports whether the line is base64, numbered or not.
func isKeyLine(line string) bool {
	line = strings.Trim(line, lineMarks)
	if n := while(line, 0, isDigit); n > 0 && n < len(line) && strings.IndexByte(lineMarks, line[n]) >= 0 {
		line = strings.Trim(line[n:], lineMarks)
	}
	return line != "" && all(line, isBase64)
}

// isKeyHeader reports whether the line is one such as "Proc-Type: 4,ENCRYPTED", or
// a line's number.
func isKeyHeader(line string) bool {
	name, _, ok := strings.Cut(strings.Trim(line, lineMarks), ": ")
	return ok && len(name) < 32 && strings.Contains(name, "-") && all(name, isWord) || all(strings.Trim(line, lineMarks), isDigit)
}

// pemTail returns where the lines of base64 begin that end at i, the place of a last
// line whose first line is missing; not before from.
func pemTail(text string, from, i int) int {
	first, start := from, i
	for end := i; end > first; {
		begin := pemPrevious(text, max(first, end-shortLine), end)
		line := strings.TrimSuffix(strings.TrimSuffix(text[begin:end], "\n"), `\n`)
		bare := strings.Trim(line, lineMarks)
		switch {
		case bare == "" && end == i: // the last line stands by itself
		case !isKeyLine(line) || len(bare) < leastLine && start != i:
			return start
		default:
			start = begin
		}
		end = begin
	}
	return start
}

// pemPrevious returns where the line begins that ends before end: behind a line break,
// or behind one that is written \n; not before from.
func pemPrevious(text string, from, end int) int {
	body := strings.TrimSuffix(strings.TrimSuffix(text[from:end], "\n"), `\n`)
	begin := strings.LastIndexByte(body, '\n') + 1
	if n := strings.LastIndex(body, `\n`); n >= begin {
		begin = n + len(`\n`)
	}
	return from + begin
}
