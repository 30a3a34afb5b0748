package fetch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"bobbin/app/core"
)

// mediaType returns the type without its parameters, in lower case.
func mediaType(contentType string) string {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind, _, _ = strings.Cut(contentType, ";")
	}
	return core.CleanText(core.Clip(strings.ToLower(strings.TrimSpace(kind)), 100))
}

// readable reports whether there is text in what has this type.
func readable(kind string) bool {
	switch {
	case strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "+json"), strings.HasSuffix(kind, "+xml"):
		return true
	case slices.Contains([]string{"application/json", "application/xml", "application/x-ndjson", "application/yaml", "application/x-yaml",
		"application/toml", "application/javascript"}, kind):
		return true
	default:
		return false
	}
}

func unreadable(kind string) error {
	return fmt.Errorf("the page is %q, which is no text; HTML, other text, JSON and XML can be read", kind)
}

func isHTML(kind string) bool { return kind == "text/html" || kind == "application/xhtml+xml" }

// decoded returns the body as UTF-8: by what the server, a byte order mark or the
// page itself says; what says nothing and is valid UTF-8 is that.
func decoded(body []byte, contentType string) string {
	const sniffed = 1024
	encoding, name, certain := charset.DetermineEncoding(body[:min(len(body), sniffed)], contentType)
	if name == "utf-8" || !certain && validPrefix(body) {
		return core.CleanText(string(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))))
	}
	text, err := encoding.NewDecoder().Bytes(body)
	if err != nil {
		text = body
	}
	return core.CleanText(string(text))
}

// validPrefix reports whether the text is valid UTF-8, but for a character that
// was cut through at the end.
func validPrefix(body []byte) bool {
	for i := 1; i < utf8.UTFMax && i < len(body); i++ {
		if last := body[len(body)-i:]; utf8.RuneStart(last[0]) && !utf8.FullRune(last) {
			return utf8.Valid(body[:len(body)-i])
		}
	}
	return utf8.Valid(body)
}

// maxTitle bounds a title, in bytes.
const maxTitle = 300

// fill puts the text in, in at most that many bytes.
func (p Page) fill(text string, base *url.URL, most int) Page {
	switch {
	case isHTML(p.MediaType):
		d := readHTML(text, base, most, p.MediaType == "application/xhtml+xml")
		p.Title, p.Text, p.Hid = d.title, d.text(), d.hid
		p.Cut = p.Cut || d.full
	case p.MediaType == "application/json" || strings.HasSuffix(p.MediaType, "+json"):
		p.Text = indented(text, most)
	default:
		p.Text = strings.TrimSpace(text)
	}
	p.Title, p.Text = visible(p.Title), visible(p.Text)
	if len(p.Text) > most {
		p.Text, p.Cut = core.Clip(p.Text, most), true
	}
	p.Title = core.Clip(strings.Join(strings.Fields(p.Title), " "), maxTitle)
	return p
}

// visible returns the text without tag characters: nobody sees them, and models
// read them as letters.
func visible(text string) string {
	const first, last = '\U000E0000', '\U000E007F'
	return strings.Map(func(r rune) rune {
		if first <= r && r <= last {
			return -1
		}
		return r
	}, text)
}

// indented returns JSON in lines, if that does not make it too long.
func indented(text string, most int) string {
	text = strings.TrimSpace(text)
	var out bytes.Buffer
	if len(text) > most/4 || json.Indent(&out, []byte(text), "", " ") != nil || out.Len() > most {
		return text
	}
	return out.String()
}
