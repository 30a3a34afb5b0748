package prompttext

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Text that a page hides from its readers must not reach a model: instructions are hidden
// there. These functions recognize elements that are never shown, the attribute hidden,
// and an element's own style; not what style sheets and scripts of the page hide.

// hidesContent reports whether an element and its content are not shown.
func hidesContent(t html.Token) bool {
	return isNeverShown(t.DataAtom) || isHiddenByAttributes(t) && t.DataAtom != atom.Html && t.DataAtom != atom.Body && !isVoid(t.DataAtom)
}

// isNeverShown reports whether browsers show nothing of an element's text.
func isNeverShown(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Iframe, atom.Object, atom.Select, atom.Title,
		atom.Noembed, atom.Noframes, atom.Datalist, atom.Audio, atom.Video, atom.Canvas:
		return true
	default:
		return false
	}
}

// isHiddenByAttributes reports whether an element's attributes hide it.
func isHiddenByAttributes(t html.Token) bool {
	for _, a := range t.Attr {
		switch {
		case a.Key == "hidden" && !strings.EqualFold(a.Val, "until-found"):
			return true
		case a.Key == "style" && isHidingStyle(a.Val):
			return true
		}
	}
	return t.DataAtom == atom.Dialog && !hasAttribute(t, "open")
}

func hasAttribute(t html.Token, name string) bool {
	for _, a := range t.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

// isHidingStyle reports whether an element with this style is invisible.
func isHidingStyle(style string) bool {
	for declaration := range strings.SplitSeq(stripComments(style), ";") {
		property, value, _ := strings.Cut(strings.ToLower(declaration), ":")
		value, _, _ = strings.Cut(value, "!")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(property) {
		case "display":
			if value == "none" {
				return true
			}
		case "visibility":
			if value == "hidden" || value == "collapse" {
				return true
			}
		case "opacity", "font-size":
			if n, err := strconv.ParseFloat(strings.TrimRight(value, "abcdefghijklmnopqrstuvwxyz%"), 64); err == nil && n <= 0 {
				return true
			}
		}
	}
	return false
}

// stripComments returns a style without its comments.
func stripComments(style string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(style, "/*")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if _, style, found = strings.Cut(rest, "*/"); !found {
			return b.String()
		}
	}
}
