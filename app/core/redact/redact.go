package redact

import (
	"slices"
	"strings"
	"unicode/utf8"

	"bobbin/app/core"
)

// kind is what a secret was; it stands in the marker.
type kind string

const (
	apiKey     kind = "api key"
	token      kind = "token"
	password   kind = "password"
	secret     kind = "secret"
	privateKey kind = "private key"
)

const markerOpen = "[redacted: "

func markerOf(k kind) string { return markerOpen + string(k) + "]" }

// markerLength returns the length of the marker that text begins with; 0 = none.
func markerLength(text string) int {
	if !strings.HasPrefix(text, markerOpen) {
		return 0
	}
	for _, k := range []kind{apiKey, token, password, secret, privateKey, card, social, pin} {
		if strings.HasPrefix(text[len(markerOpen):], string(k)+"]") {
			return len(markerOf(k))
		}
	}
	return 0
}

// Text returns s with a marker in place of every secret in it. A text without
// secrets is returned unchanged. The result is valid UTF-8 if s is.
func Text(s string) string {
	if len(s) < minPassword {
		return s
	}
	f := &finder{text: s}
	for _, find := range []func(){f.findPrivateKeys, f.findURLPasswords, f.findInWords} {
		f.found = f.found[:0]
		find()
		f.text = f.withMarkers()
	}
	return f.text
}

// finder collects the secrets of a text. The secrets of one search are replaced
// before the next search starts.
type finder struct {
	text  string
	found []span
}

// span is a secret's place in the text.
type span struct {
	from, to int
	kind     kind
}

func (f *finder) add(from, to int, k kind) { f.found = append(f.found, span{from, to, k}) }

// withMarkers returns the text with markers. Overlapping spans are one secret, of
// the kind of the first of them.
func (f *finder) withMarkers() string {
	if len(f.found) == 0 {
		return f.text
	}
	slices.SortStableFunc(f.found, func(a, b span) int { return a.from - b.from })
	var b strings.Builder
	done := 0 // of the text
	for i := 0; i < len(f.found); {
		s := f.found[i]
		for i++; i < len(f.found) && f.found[i].from < s.to; i++ {
			s.to = max(s.to, f.found[i].to)
		}
		b.WriteString(f.text[done:s.from])
		b.WriteString(markerOf(s.kind))
		done = s.to
	}
	b.WriteString(f.text[done:])
	return b.String()
}

// findInWords adds keys by their shape, values by the label before them, and
// secret numbers. It reads each word once.
func (f *finder) findInWords() {
	for i := 0; i < len(f.text); {
		b := f.text[i]
		switch {
		case b == '[':
			i += max(markerLength(f.text[i:]), 1)
		case isDigit(b) && f.numberEnd(i) > i:
			i = f.found[len(f.found)-1].to
		case isWord(b):
			i = f.readWord(i)
		case b == '$':
			i = max(f.shapeEnd(i), i+1)
		case b >= utf8.RuneSelf:
			i = f.readForeignLabel(i)
		default:
			i++
		}
	}
}

// readWord looks at the word that begins at i and returns where to continue.
func (f *finder) readWord(i int) int {
	end := classEnd(f.text, i, isWord)
	if to := f.shapeInWord(i, end); to > 0 {
		return to
	}
	word := f.text[i:end]
	if pinLabel.MatchString(word) {
		// "PIN 1234", "my pin is 1234". It returns its end; end = there is none.
		m := pinAfter.FindStringSubmatchIndex(f.textFrom(end, maxNumber))
		if m == nil || isLower(f.text[i+1]) && !pinVerb.MatchString(f.text[end:end+m[3]]) { // "pin 4000 of the connector"
			return end
		}
		f.add(end+m[4], end+m[5], pin)
		return end + m[5]
	}
	if strings.EqualFold(word, "bearer") {
		from := classEnd(f.text, end, func(b byte) bool { return b == ' ' })
		to := from + len(strings.TrimRight(f.text[from:classEnd(f.text, from, isToken)], ".:,"))
		if text := f.text[from:to]; from > end && len(text) >= minBearer && hasDigit(text) {
			f.add(from, to, token)
			return to
		}
		return end
	}
	if k, ok := f.labelKind(f.text[:end]); ok {
		return f.valueEnd(i, end, k)
	}
	return end
}

// shapeInWord adds the key in the word from i to end and returns its end; 0 = there
// is none. A key begins with its word, or behind an escape that looks like the
// beginning of the word: \n, %3D, the end of a terminal color.
func (f *finder) shapeInWord(i, end int) int {
	starts := []int{i}
	if i > 0 {
		switch f.text[i-1] {
		case '\\':
			starts = append(starts, i+1)
		case '%':
			starts = append(starts, i+2)
		case '[', ';':
			if n := classEnd(f.text, i, isDigit); n < end && f.text[n] == 'm' {
				starts = append(starts, n+1)
			}
		}
	}
	for _, start := range starts {
		if start < end {
			if to := f.shapeEnd(start); to > start {
				return to
			}
		}
	}
	return 0
}

// textFrom returns the text from i on, about n bytes of it: whole characters.
func (f *finder) textFrom(i, n int) string { return core.Clip(f.text[i:], n) }
