package fetch

import (
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"bobbin/app/core"
)

// document is an HTML page on its way to text: headings with #, lists with -,
// links as [text](address), one empty line between paragraphs. It reads the page
// piece by piece and not as a tree, which no nesting makes slow or deep.
type document struct {
	base  *url.URL
	most  int
	full  bool // there was more than fits
	title string

	out    strings.Builder
	breaks int      // lines to be broken before the next text: 0, 1 or 2
	space  bool     // a blank to be written before the next text
	marker bool     // what was written last is # or -, whose text follows in its line
	verse  int      // depth of elements whose blanks count
	based  bool     // the page said what its addresses begin with
	links  []string // addresses of the links that are open

	at  nesting
	hid bool // text was left out that readers do not see
}

// readHTML reads a page; most bounds its text, in bytes. In XML an element may end
// where it begins.
func readHTML(page string, base *url.URL, most int, xml bool) *document {
	d := &document{base: base, most: most}
	z := html.NewTokenizer(strings.NewReader(page))
	inTitle := false
	for !d.full {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return d
		case html.TextToken:
			d.read(string(z.Text()), inTitle)
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if kind == html.SelfClosingTagToken && (xml || t.DataAtom == atom.Svg || t.DataAtom == atom.Math || d.drawing()) {
				z.NextIsNotRawText()
				d.single(t)
				continue
			}
			if inTitle = t.DataAtom == atom.Title && d.title == "" && !d.at.hidden; !inTitle {
				d.open(t)
			}
		case html.EndTagToken:
			inTitle = false
			d.close(z.Token())
		case html.CommentToken, html.DoctypeToken:
		}
	}
	return d
}

// read takes a text of the page.
func (d *document) read(text string, inTitle bool) {
	switch {
	case d.at.hidden:
		d.hid = d.hid || !skipped(d.at.root) && strings.TrimSpace(text) != ""
	case inTitle:
		d.title += text
	default:
		d.say(text)
	}
}

// drawing reports whether this is within a drawing, which is XML.
func (d *document) drawing() bool { return d.at.hidden && d.at.root == atom.Svg }

// text returns what was read so far.
func (d *document) text() string { return strings.TrimSpace(d.out.String()) }

func (d *document) open(t html.Token) {
	was := d.at.hidden
	d.at.begin(t)
	switch {
	case d.at.hidden && !was && special(t.DataAtom) && !skipped(t.DataAtom):
		d.breakLine(1)
	case d.at.hidden:
	case t.DataAtom == atom.A:
		d.openLink(attribute(t, "href"))
	default:
		d.single(t)
	}
}

// single is what an element without content, or the beginning of another one, does.
func (d *document) single(t html.Token) {
	if d.at.hidden || unshown(t) && isVoid(t.DataAtom) {
		return
	}
	switch t.DataAtom {
	case atom.Base:
		d.setBase(attribute(t, "href"))
	case atom.Br:
		d.breakLine(1)
	case atom.Hr:
		d.breakLine(2)
	case atom.Img:
		if alt := strings.TrimSpace(attribute(t, "alt")); alt != "" {
			d.say("[image: " + alt + "]")
		}
	case atom.Pre:
		d.breakLine(2)
		d.verse++
	case atom.Li:
		d.breakLine(1)
		d.lead("- ")
	case atom.Td, atom.Th:
		d.say(" | ")
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
		d.lead(strings.Repeat("#", level) + " ")
	case isBlock(a):
		d.breakLine(2)
	}
}

func (d *document) close(t html.Token) {
	if !d.at.end(t) {
		return
	}
	a := t.DataAtom
	switch {
	case a == atom.A:
		d.closeLink()
	case a == atom.Pre:
		d.verse = max(d.verse-1, 0)
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

func attribute(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// setBase takes what the page says that its addresses begin with, once.
func (d *document) setBase(href string) {
	if to, err := d.base.Parse(strings.TrimSpace(href)); err == nil && href != "" && !d.based && len(to.String()) <= maxURL {
		d.base, d.based = to, true
	}
}

// maxOpenLinks bounds links within links, which no proper page has.
const maxOpenLinks = 16

// openLink begins a link that leads to another page; others are text.
func (d *document) openLink(href string) {
	address := ""
	if to, err := d.base.Parse(strings.TrimSpace(href)); err == nil && href != "" && !strings.HasPrefix(href, "#") &&
		(to.Scheme == "http" || to.Scheme == "https") && to.User == nil && len(to.String()) <= maxURL {
		address = to.String()
	}
	if len(d.links) >= maxOpenLinks {
		return
	}
	if d.links = append(d.links, address); address != "" {
		d.mark("[")
	}
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

// breakLine begins a new line before the next text; 2 = with an empty one between.
func (d *document) breakLine(n int) {
	d.breaks, d.space = max(d.breaks, n), false
}

// say writes text of the page; blanks are one blank.
func (d *document) say(text string) {
	if d.verse > 0 {
		d.mark("")
		d.write(text)
		return
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		d.space = d.space || text != ""
		return
	}
	d.space = d.space || unicode.IsSpace(rune(text[0]))
	d.mark(strings.Join(words, " "))
	d.space = unicode.IsSpace(rune(text[len(text)-1]))
}

// mark writes text after the breaks and the blank that are due.
func (d *document) mark(text string) {
	if d.space && d.breaks == 0 && !d.marker && d.out.Len() > 0 {
		text = " " + text
	}
	d.space = false
	d.write(text)
}

// write writes text after the breaks that are due, as long as there is room.
func (d *document) write(text string) {
	if d.out.Len() > 0 && !d.marker {
		text = strings.Repeat("\n", d.breaks) + text
	}
	d.breaks, d.marker = 0, false
	if room := d.most - d.out.Len(); len(text) > room {
		d.full, text = true, core.Clip(text, room)
	}
	d.out.WriteString(text)
}

// lead writes what stands before the text of a heading or an item.
func (d *document) lead(marker string) {
	d.write(marker)
	d.marker = true
}
