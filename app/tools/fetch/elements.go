package fetch

import (
	"slices"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// elements are what is open at a place of a page, the innermost last. They follow
// the rules of browsers as far as it matters for what an end tag closes: of
// "<div></span>" nothing, of "<td></div>" nothing, of "<ul><li></ul>" both.
type elements []element

// element is one that is open.
type element struct {
	name    string
	special bool // it is more than a part of a line of text
}

// elementOf returns the element that a tag begins or ends; the end of any heading
// ends a heading.
func elementOf(t html.Token) element {
	if headingLevel(t.DataAtom) > 0 {
		return element{"h1", true}
	}
	return element{t.Data, special(t.DataAtom)}
}

// maxSearch bounds how far down an element is looked for, which no nesting makes slow.
const maxSearch = 512

// without returns what is open after an end tag.
func (e elements) without(tag element) elements {
	for i := len(e) - 1; i >= max(0, len(e)-maxSearch); i-- {
		if e[i].name == tag.name {
			return e[:i]
		}
		if e[i].stops(tag) {
			break
		}
	}
	return e
}

// stops reports whether an end tag closes nothing outside of an open element.
func (e element) stops(tag element) bool {
	switch tag.name {
	case "table", "thead", "tbody", "tfoot", "tr":
		return e.name == "table"
	case "li":
		return e.name == "ul" || e.name == "ol" || bounds(e.name)
	case "p": // which every other block ends
		return e.special
	}
	if tag.special {
		return bounds(e.name)
	}
	return e.special
}

// bounds reports whether only its own end tag, or one of a table, leaves an element.
func bounds(name string) bool {
	switch name {
	case "td", "th", "caption", "table", "object", "marquee", "template":
		return true
	default:
		return false
	}
}

// special reports whether an element is more than a part of a line of text.
func special(a atom.Atom) bool {
	switch a {
	case atom.Svg, atom.Audio, atom.Video, atom.Canvas, atom.Datalist:
		return false
	case atom.Button, atom.Caption, atom.Center, atom.Colgroup, atom.Dd, atom.Dir, atom.Dt, atom.Head, atom.Hgroup, atom.Html,
		atom.Li, atom.Marquee, atom.Menu, atom.Pre, atom.Textarea, atom.Xmp:
		return true
	default:
		return isBlock(a) || isRow(a) || isCell(a) || headingLevel(a) > 0 || isVoid(a) || skipped(a)
	}
}

// isVoid reports whether an element has no content.
func isVoid(a atom.Atom) bool {
	switch a {
	case atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta, atom.Source, atom.Track, atom.Wbr:
		return true
	default:
		return false
	}
}

func isCell(a atom.Atom) bool { return a == atom.Td || a == atom.Th }

func isRow(a atom.Atom) bool {
	return a == atom.Tr || a == atom.Thead || a == atom.Tbody || a == atom.Tfoot
}

// inTable reports whether something stands in a table. Parts of a table that do not
// are no elements.
func (e elements) inTable() bool {
	for i := len(e) - 1; i >= max(0, len(e)-maxSearch); i-- {
		if e[i].name == "table" {
			return true
		}
	}
	return false
}

// begin returns what is still open where an element begins: some end others.
func (e elements) begin(t html.Token) elements {
	switch a := t.DataAtom; {
	case a == atom.Li:
		return e.endItem("li", "li")
	case a == atom.Dt || a == atom.Dd:
		return e.endItem("dt", "dd")
	case isCell(a):
		return e.upTo("tr", "tbody", "thead", "tfoot", "table").inRow("tbody", "tr")
	case a == atom.Tr:
		return e.upTo("tbody", "thead", "tfoot", "table").inRow("tbody")
	case isRow(a) || a == atom.Caption:
		return e.upTo("table")
	case headingLevel(a) > 0 && len(e) > 0 && e[len(e)-1].name == "h1":
		return e[:len(e)-1]
	case a == atom.Table: // within a table only in its cells
		if in := e.upTo("td", "th", "caption", "table"); len(in) > 0 && in[len(in)-1].name == "table" {
			return in[:len(in)-1]
		}
		return e
	default:
		return e
	}
}

// endItem ends the item of a list that is open.
func (e elements) endItem(name, other string) elements {
	for i := len(e) - 1; i >= max(0, len(e)-maxSearch); i-- {
		if e[i].name == name || e[i].name == other {
			return e[:i]
		}
		if e[i].isSpecial() {
			break
		}
	}
	return e
}

// upTo ends what is open within the innermost element of one of the names.
func (e elements) upTo(names ...string) elements {
	for i := len(e) - 1; i >= max(0, len(e)-maxSearch); i-- {
		if slices.Contains(names, e[i].name) {
			return e[:i+1]
		}
	}
	return e
}

// inRow begins the parts of a table that an element stands in without saying so.
func (e elements) inRow(names ...string) elements {
	for _, name := range names {
		if last := e[len(e)-1].name; last == "table" || name == "tr" && last != "tr" {
			e = append(e, element{name, true})
		}
	}
	return e
}

func (e element) isSpecial() bool {
	return e.special && e.name != "div" && e.name != "p" && e.name != "address"
}
