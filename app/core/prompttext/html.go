package prompttext

import (
	"context"
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"bobbin/app/core"
)

// maxURL bounds an address in the text, in bytes.
const maxURL = 2048

// Page is the readable text of a page.
type Page struct {
	Title     string // as in the page; empty = none
	Text      string
	HasHidden bool // text was omitted that the page hides from its readers
	Truncated bool // there was more text than the limit
}

// HTMLOptions configure how to read a page.
type HTMLOptions struct {
	Base *url.URL // of the page's addresses
	Max  int      // bytes of the text
	XML  bool     // an element may end where it begins
}

// ReadHTML returns the text of a page, or of its beginning if ctx ends before: headings with #,
// lists with -, links as [text](address). It executes and loads nothing of a page. It omits text
// that a page hides from its readers (see nesting), which does not protect against instructions
// in the visible text.
func ReadHTML(ctx context.Context, page string, o HTMLOptions) Page {
	d := parseHTML(ctx, page, o)
	return Page{Title: d.title, Text: d.text(), HasHidden: d.hasHidden, Truncated: d.full}
}

// document converts an HTML page to text: headings with #, lists with -, links as
// [text](address), one empty line between paragraphs. It reads tokens, not a tree, so that
// no nesting makes it slow or deep.
type document struct {
	base     *url.URL
	maxBytes int
	full     bool // there was more than fits
	title    string

	out       strings.Builder
	breaks    int      // pending line breaks before the next text: 0, 1 or 2
	space     bool     // a blank is pending before the next text
	marker    bool     // the last text is # or -; its text follows on the same line
	preDepth  int      // depth of elements that preserve white space
	hasBase   bool     // the page has set the base of its addresses
	links     []string // addresses of the open links
	linkCount int      // links of the page

	at        nesting
	hasHidden bool // hidden text was omitted
}

// tokensPerCheck is the number of HTML tokens between two checks of ctx.
const tokensPerCheck = 1000

// parseHTML reads a page until ctx ends.
func parseHTML(ctx context.Context, page string, o HTMLOptions) *document {
	d := &document{base: o.Base, maxBytes: o.Max}
	z := html.NewTokenizer(strings.NewReader(page))
	inTitle := false
	for n := 1; !d.full; n++ {
		if n%tokensPerCheck == 0 && ctx.Err() != nil {
			return d
		}
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return d
		case html.TextToken:
			d.readText(string(z.Text()), inTitle)
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if kind == html.SelfClosingTagToken && (o.XML || t.DataAtom == atom.Svg || t.DataAtom == atom.Math || d.inDrawing()) {
				z.NextIsNotRawText()
				d.applyStartTag(t)
				continue
			}
			if inTitle = t.DataAtom == atom.Title && d.title == "" && !d.at.hidden; !inTitle {
				d.openElement(t)
			}
		case html.EndTagToken:
			inTitle = false
			d.closeElement(z.Token())
		case html.CommentToken, html.DoctypeToken:
		}
	}
	return d
}

// readText reads a text token.
func (d *document) readText(text string, inTitle bool) {
	switch {
	case d.at.hidden:
		d.hasHidden = d.hasHidden || !isNeverShown(d.at.root) && strings.TrimSpace(text) != ""
	case inTitle:
		d.title += text
	default:
		d.writeText(text)
	}
}

// inDrawing reports whether the current place is within an SVG drawing, which is XML.
func (d *document) inDrawing() bool { return d.at.hidden && d.at.root == atom.Svg }

// text returns the text up to the current place.
func (d *document) text() string { return strings.TrimSpace(d.out.String()) }

func (d *document) openElement(t html.Token) {
	was := d.at.hidden
	d.at.startElement(t)
	switch {
	case d.at.hidden && !was && isSpecial(t.DataAtom) && !isNeverShown(t.DataAtom):
		d.breakLine(1)
	case d.at.hidden:
	case t.DataAtom == atom.A:
		d.openLink(attributeValue(t, "href"))
	default:
		d.applyStartTag(t)
	}
}

// applyStartTag writes what an element without content, or the start of an element, adds
// to the text.
func (d *document) applyStartTag(t html.Token) {
	if d.at.hidden || isHiddenByAttributes(t) && isVoid(t.DataAtom) {
		return
	}
	switch t.DataAtom {
	case atom.Base:
		d.setBase(attributeValue(t, "href"))
	case atom.Br:
		d.breakLine(1)
	case atom.Hr:
		d.breakLine(2)
	case atom.Img:
		if alt := strings.TrimSpace(attributeValue(t, "alt")); alt != "" {
			d.writeText("[image: " + alt + "]")
		}
	case atom.Pre:
		d.breakLine(2)
		d.preDepth++
	case atom.Li:
		d.breakLine(1)
		d.writeMarker("- ")
	case atom.Td, atom.Th:
		d.writeText(" | ")
	case atom.Tr, atom.Dt, atom.Dd, atom.Option:
		d.breakLine(1)
	default:
		d.beginBlock(t.DataAtom)
	}
}

func (d *document) beginBlock(a atom.Atom) {
	switch level := headingLevel(a); {
	case level > 0:
		d.breakLine(2)
		d.writeMarker(strings.Repeat("#", level) + " ")
	case isBlock(a):
		d.breakLine(2)
	}
}

func (d *document) closeElement(t html.Token) {
	if !d.at.endElement(t) {
		return
	}
	a := t.DataAtom
	switch {
	case a == atom.A:
		d.closeLink()
	case a == atom.Pre:
		d.preDepth = max(d.preDepth-1, 0)
		d.breakLine(2)
	case a == atom.Tr || a == atom.Li:
		d.breakLine(1)
	case headingLevel(a) > 0 || isBlock(a):
		d.breakLine(2)
	}
}

func headingLevel(a atom.Atom) int {
	for i, h := range []atom.Atom{atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6} {
		if a == h {
			return i + 1
		}
	}
	return 0
}

func isBlock(a atom.Atom) bool {
	switch a {
	case atom.P, atom.Div, atom.Section, atom.Article, atom.Main, atom.Header, atom.Footer, atom.Nav, atom.Aside, atom.Ul, atom.Ol,
		atom.Dl, atom.Table, atom.Blockquote, atom.Figure, atom.Figcaption, atom.Form, atom.Fieldset, atom.Details, atom.Summary, atom.Body, atom.Address:
		return true
	default:
		return false
	}
}

func attributeValue(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// setBase sets the base of the page's addresses, once.
func (d *document) setBase(href string) {
	if to, err := d.base.Parse(strings.TrimSpace(href)); err == nil && href != "" && !d.hasBase && len(to.String()) <= maxURL {
		d.base, d.hasBase = to, true
	}
}

const (
	maxOpenLinks = 16     // links within links, which no proper page has
	maxLinks     = 20_000 // of a page; later ones become text
)

// openLink begins a link to another page; other links become text.
func (d *document) openLink(href string) {
	if len(d.links) >= maxOpenLinks {
		return
	}
	address := ""
	if d.linkCount++; d.linkCount <= maxLinks && href != "" && !strings.HasPrefix(href, "#") {
		address = d.absoluteURL(href)
	}
	if d.links = append(d.links, address); address != "" {
		d.writeInline("[")
	}
}

// absoluteURL returns the address of another page; empty = none.
func (d *document) absoluteURL(href string) string {
	to, err := d.base.Parse(strings.TrimSpace(href))
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.User != nil {
		return ""
	}
	if address := to.String(); len(address) <= maxURL {
		return address
	}
	return ""
}

func (d *document) closeLink() {
	n := len(d.links)
	if n == 0 {
		return
	}
	address := d.links[n-1]
	if d.links = d.links[:n-1]; address != "" {
		d.breaks, d.space = 0, false
		d.write("](" + address + ")")
	}
}

// breakLine starts a new line before the next text; 2 = with an empty line between.
func (d *document) breakLine(n int) {
	d.breaks, d.space = max(d.breaks, n), false
}

// writeText writes text of the page; white space becomes one blank.
func (d *document) writeText(text string) {
	if d.preDepth > 0 {
		d.writeInline("")
		d.write(text)
		return
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		d.space = d.space || text != ""
		return
	}
	d.space = d.space || unicode.IsSpace(rune(text[0]))
	d.writeInline(strings.Join(words, " "))
	d.space = unicode.IsSpace(rune(text[len(text)-1]))
}

// writeInline writes text after the pending line breaks and blank.
func (d *document) writeInline(text string) {
	if d.space && d.breaks == 0 && !d.marker && d.out.Len() > 0 {
		text = " " + text
	}
	d.space = false
	d.write(text)
}

// write writes text after the pending line breaks, up to the limit.
func (d *document) write(text string) {
	if d.out.Len() > 0 && !d.marker {
		text = strings.Repeat("\n", d.breaks) + text
	}
	d.breaks, d.marker = 0, false
	if room := d.maxBytes - d.out.Len(); len(text) > room {
		d.full, text = true, core.Clip(text, room)
	}
	d.out.WriteString(text)
}

// writeMarker writes the marker before the text of a heading or an item.
func (d *document) writeMarker(marker string) {
	d.write(marker)
	d.marker = true
}
