package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime"
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

// isReadable reports whether content of this media type is text.
func isReadable(kind string) bool {
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

func unreadableError(kind string) error {
	return fmt.Errorf("the page is %q, which is not text; only HTML, other text, JSON and XML can be read", kind)
}

// decodeBody converts the body to UTF-8, from the encoding that the server, a byte order
// mark or the page itself names; valid UTF-8 without any of them stays.
func decodeBody(body []byte, contentType string) string {
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

// validPrefix reports whether the text is valid UTF-8, except for an incomplete character
// at its end.
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

// withText returns the page with its title and text, at most limit bytes.
func (f *Fetcher) withText(ctx context.Context, p Page, text string, limit int) (Page, error) {
	switch {
	case p.MediaType == "text/html" || p.MediaType == "application/xhtml+xml":
		page, err := f.o.ReadHTML(ctx, p.MediaType, p.URL, text)
		if err != nil {
			return p, err
		}
		p.Title, p.Text, p.HasHidden = page.Title, page.Text, page.HasHidden
		p.Cut = p.Cut || page.Cut
	case p.MediaType == "application/json" || strings.HasSuffix(p.MediaType, "+json"):
		p.Text = indentJSON(text, limit)
	default:
		p.Text = strings.TrimSpace(text)
	}
	p.Title, p.Text = core.VisibleText(p.Title), core.VisibleText(p.Text)
	if len(p.Text) > limit {
		p.Text, p.Cut = core.Clip(p.Text, limit), true
	}
	p.Title = core.Clip(strings.Join(strings.Fields(p.Title), " "), maxTitle)
	return p, nil
}

// indentJSON returns indented JSON, or the text itself if that would exceed the limit.
func indentJSON(text string, limit int) string {
	text = strings.TrimSpace(text)
	var out bytes.Buffer
	if len(text) > limit/4 || json.Indent(&out, []byte(text), "", " ") != nil || out.Len() > limit {
		return text
	}
	return out.String()
}
