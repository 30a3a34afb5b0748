package prompttext

import (
	"slices"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// nesting tracks the open elements at a place of a page, and whether the place is shown.
// The end of a hidden element must be exact: "<div hidden></span>text" shows nothing,
// "<li hidden>text<li>text" shows the second text.
type nesting struct {
	open elements

	root   atom.Atom // the outermost hidden element
	hidden bool
	from   int     // where the root is in open
	styles []style // that are open
	// tooDeep means that more elements are open than the limit. The end of a hidden element
	// is then not known: it stays hidden to the end of the page.
	tooDeep bool
}

// maxStyles bounds the open styles.
const maxStyles = 16

// style is an element such as b, which continues after the end of its parent until its
// own end tag.
type style struct {
	name   string
	atom   atom.Atom
	hidden bool
}

// startElement records the start of an element.
func (n *nesting) startElement(t html.Token) {
	a := t.DataAtom
	if n.tooDeep && !n.hidden && hidesContent(t) && !isNeverShown(a) {
		n.hidden, n.root = true, a
		return
	}
	if (isRow(a) || isCell(a) || a == atom.Caption) && !n.open.inTable() {
		return // no element
	}
	open := n.open
	if closesParagraph(a) {
		open = open.afterEndTag(element{"p", true})
	}
	if a == atom.A { // a link ends the previous one
		n.endStyle(t.Data)
		if n.hidden && n.root == atom.A && len(open) == n.from+1 {
			open = open[:n.from]
		}
	}
	if n.hidden && headingLevel(a) > 0 && len(open) == n.from+1 && len(n.styles) > 0 {
		open[n.from].name = "" // a style that began again in the heading keeps it open
	}
	n.setOpen(open.afterStartTag(t))
	if !n.hidden && hidesContent(t) {
		n.hidden, n.root, n.from = true, a, len(n.open)
	}
	if isFormatting(a) && len(n.styles) < maxStyles {
		n.styles = append(n.styles, style{t.Data, a, isHiddenByAttributes(t)})
	}
	if !isVoid(a) {
		n.open = append(n.open, elementOf(t))
	}
	n.tooDeep = n.tooDeep || len(n.open) > maxSearch || len(n.styles) == maxStyles
}

// endElement records an end tag, and reports whether its element was shown.
func (n *nesting) endElement(t html.Token) (shown bool) {
	n.endStyle(t.Data)
	from, was := n.from, n.hidden
	open := n.open.afterEndTag(elementOf(t))
	closes := len(open) < len(n.open)
	n.setOpen(open)
	return !was || closes && len(open) < from && !n.hidden
}

// setOpen sets the open elements, and ends the hidden element if it is no longer open.
func (n *nesting) setOpen(open elements) {
	n.open = open
	if !n.hidden || len(open) > n.from || n.tooDeep && !isNeverShown(n.root) {
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

// endStyle ends the last style of that name.
func (n *nesting) endStyle(name string) {
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

// isFormatting reports whether an element continues after the end of its parent, until its
// own end tag.
func isFormatting(a atom.Atom) bool {
	switch a {
	case atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small, atom.Strike, atom.Strong, atom.Tt, atom.U:
		return true
	default:
		return false
	}
}
