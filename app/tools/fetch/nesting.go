package fetch

import (
	"slices"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// nesting is what is open at a place of a page, and whether that is shown. What ends a
// hidden element must be known well: of "<div hidden></span>text" nothing is shown,
// of "<li hidden>text<li>text" the second text is.
type nesting struct {
	open elements

	root   atom.Atom // the outermost hidden element
	hidden bool
	from   int     // where the root is in open
	styles []style // that were begun and not ended
}

// style is an element such as b, which goes on after the end of what it is in until
// its own end.
type style struct {
	name   string
	atom   atom.Atom
	hidden bool
}

// begin takes note of the beginning of an element.
func (n *nesting) begin(t html.Token) {
	a := t.DataAtom
	if (isRow(a) || isCell(a) || a == atom.Caption) && !n.open.inTable() {
		return // no element
	}
	open := n.open
	if closesParagraph(a) {
		open = open.without(element{"p", true})
	}
	if a == atom.A { // a link ends where another one begins
		n.unstyle(t.Data)
		if n.hidden && n.root == atom.A && len(open) == n.from+1 {
			open = open[:n.from]
		}
	}
	if n.hidden && headingLevel(a) > 0 && len(open) == n.from+1 && len(n.styles) > 0 {
		open[n.from].name = "" // a style may have begun again in a heading, which keeps it open
	}
	n.shrink(open.begin(t))
	if !n.hidden && conceals(t) {
		n.hidden, n.root, n.from = true, a, len(n.open)
	}
	if formatting(a) && len(n.styles) < maxSearch {
		n.styles = append(n.styles, style{t.Data, a, unshown(t)})
	}
	if !isVoid(a) {
		n.open = append(n.open, elementOf(t))
	}
}

// end takes note of an end tag, and reports whether that of something that was shown.
func (n *nesting) end(t html.Token) (shown bool) {
	n.unstyle(t.Data)
	from, was := n.from, n.hidden
	open := n.open.without(elementOf(t))
	closes := len(open) < len(n.open)
	n.shrink(open)
	return !was || closes && len(open) < from && !n.hidden
}

// shrink makes open what is still open.
func (n *nesting) shrink(open elements) {
	n.open = open
	if !n.hidden || len(open) > n.from {
		return
	}
	n.hidden, n.root = false, 0
	for i, s := range n.styles {
		if !s.hidden {
			continue
		}
		n.hidden, n.root, n.from = true, s.atom, len(open)
		for _, s := range n.styles[i:] {
			n.open = append(n.open, element{name: s.name})
		}
		return
	}
}

// unstyle ends the last style of that name.
func (n *nesting) unstyle(name string) {
	for i := len(n.styles) - 1; i >= 0; i-- {
		if n.styles[i].name == name {
			n.styles = slices.Delete(n.styles, i, i+1)
			return
		}
	}
}

// closesParagraph reports whether the beginning of an element ends a paragraph.
func closesParagraph(a atom.Atom) bool {
	switch a {
	case atom.Hr, atom.Pre, atom.Li, atom.Dd, atom.Dt, atom.Center, atom.Dir, atom.Menu, atom.Hgroup, atom.Xmp:
		return true
	default:
		return isBlock(a) || headingLevel(a) > 0
	}
}

// formatting reports whether an element goes on after the end of what it is in, until
// its own end.
func formatting(a atom.Atom) bool {
	switch a {
	case atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small, atom.Strike, atom.Strong, atom.Tt, atom.U:
		return true
	default:
		return false
	}
}
