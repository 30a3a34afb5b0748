package prompttext

import (
	"slices"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// elements are the open elements at a place of a page, the innermost last. They follow
// the rules of browsers for what an end tag closes: nothing in "<div></span>" and
// "<td></div>", both elements in "<ul><li></ul>".
type elements []element

// element is an open element.
type element struct {
	name    string
	special bool // see isSpecial
}

// elementOf returns the element that a tag begins or ends; the end of any heading
// ends a heading.
func elementOf(t html.Token) element {
	if headingLevel(t.DataAtom) > 0 {
		return element{"h1", true}
	}
	return element{t.Data, isSpecial(t.DataAtom)}
}

// maxSearch bounds the search for an open element, so that no nesting makes a page slow.
const maxSearch = 64

// afterEndTag returns the elements that are open after an end tag.
func (e elements) afterEndTag(tag element) elements {
	isBorder := borderOf(tag)
	for i := len(e) - 1; i >= max(0, len(e)-maxSearch); i-- {
		if e[i].special == tag.special && e[i].name == tag.name { // most differ here, which is cheaper to compare than names
			return e[:i]
		}
		if isBorder(e[i]) {
			break
		}
	}
	return e
}

// borderOf returns a function that reports whether the end tag closes nothing outside of
// an open element.
func borderOf(tag element) func(element) bool {
	switch tag.name {
	case "table", "thead", "tbody", "tfoot", "tr":
		return func(e element) bool { return e.name == "table" }
	case "li":
		return func(e element) bool { return e.name == "ul" || e.name == "ol" || isBoundary(e.name) }
	case "p": // every other block ends it
		return func(e element) bool { return e.special }
	}
	if tag.special {
		return func(e element) bool { return isBoundary(e.name) }
	}
	return func(e element) bool { return e.special }
}

// isBoundary reports whether only its own end tag, or one of a table, closes an element.
func isBoundary(name string) bool {
	switch name {
	case "td", "th", "caption", "table", "object", "marquee", "template":
		return true
	default:
		return false
	}
}

// isSpecial reports whether an element is not inline text (the HTML standard's "special").
func isSpecial(a atom.Atom) bool {
	switch a {
	case atom.Svg, atom.Audio, atom.Video, atom.Canvas, atom.Datalist:
		return false
	case atom.Button, atom.Caption, atom.Center, atom.Colgroup, atom.Dd, atom.Dir, atom.Dt, atom.Head, atom.Hgroup, atom.Html,
		atom.Li, atom.Marquee, atom.Menu, atom.Pre, atom.Textarea, atom.Xmp:
		return true
	default:
		return isBlock(a) || isRow(a) || isCell(a) || headingLevel(a) > 0 || isVoid(a) || isNeverShown(a)
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

// inTable reports whether a table is open. Outside of one, the parts of a table are no
// elements.
func (e elements) inTable() bool {
	for i := len(e) - 1; i >= max(0, len(e)-maxSearch); i-- {
		if e[i].name == "table" {
			return true
		}
	}
	return false
}

// afterStartTag returns the elements that stay open when an element begins: some elements
// end others.
func (e elements) afterStartTag(t html.Token) elements {
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
	case a == atom.Table: // only cells contain another table
		if in := e.upTo("td", "th", "caption", "table"); len(in) > 0 && in[len(in)-1].name == "table" {
			return in[:len(in)-1]
		}
		return e
	default:
		return e
	}
}

// endItem ends the open item of a list.
func (e elements) endItem(name, other string) elements {
	for i := len(e) - 1; i >= max(0, len(e)-maxSearch); i-- {
		if e[i].name == name || e[i].name == other {
			return e[:i]
		}
		if e[i].stopsItem() {
			break
		}
	}
	return e
}

// upTo ends the elements within the innermost element with one of the names.
func (e elements) upTo(names ...string) elements {
	for i := len(e) - 1; i >= max(0, len(e)-maxSearch); i-- {
		if slices.Contains(names, e[i].name) {
			return e[:i+1]
		}
	}
	return e
}

// inRow begins the parts of a table that the page omits.
func (e elements) inRow(names ...string) elements {
	for _, name := range names {
		if last := e[len(e)-1].name; last == "table" || name == "tr" && last != "tr" {
			e = append(e, element{name, true})
		}
	}
	return e
}

// stopsItem reports whether the search for an open item ends at this element.
func (e element) stopsItem() bool {
	return e.special && e.name != "div" && e.name != "p" && e.name != "address"
}
