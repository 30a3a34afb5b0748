package redact

import (
	"slices"
	"strings"

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

func (k kind) marker() string { return markerOpen + string(k) + "]" }

// markerAt returns the length of the marker that begins at i; 0 = none does.
func markerAt(s string, i int) int {
	if !strings.HasPrefix(s[i:], markerOpen) {
		return 0
	}
	for _, k := range []kind{apiKey, token, password, secret, privateKey} {
		if strings.HasPrefix(s[i+len(markerOpen):], string(k)+"]") {
			return len(k.marker())
		}
	}
	return 0
}

// Text returns s with a marker in place of every secret in it. A text without
// secrets comes back as it is. The result is valid UTF-8 if s is.
func Text(s string) string {
	if len(s) < leastPassword {
		return s
	}
	f := &finder{text: s, table: newTable()}
	for _, find := range []func(){f.privateKeys, f.urls, f.words} {
		f.found = f.found[:0]
		find()
		f.text = f.replaced()
	}
	return f.text
}

// finder collects the secrets of a text. What one search found is replaced before
// the next one, so that a second time finds nothing that the first did not see.
type finder struct {
	*table
	text  string
	found []span
}

// span is a secret's place in the text.
type span struct {
	from, to int
	kind     kind
}

func (f *finder) add(from, to int, k kind) { f.found = append(f.found, span{from, to, k}) }

// ahead returns the text from i on, n bytes of it or a little less: whole characters.
func (f *finder) ahead(i, n int) string { return core.Clip(f.text[i:], n) }

// replaced returns the text with markers. Places that overlap are one secret, of
// the kind of the first of them.
func (f *finder) replaced() string {
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
		b.WriteString(s.kind.marker())
		done = s.to
	}
	b.WriteString(f.text[done:])
	return b.String()
}
