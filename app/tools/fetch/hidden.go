package fetch

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Text that a page does not show to its readers must not be read by a model either:
// it is where instructions are hidden. Known are elements that show nothing
// (skipped), the attribute hidden, and what an element's own style says; what style
// sheets and programs of the page hide is not known here.

// conceals reports whether nothing of an element is shown.
func conceals(t html.Token) bool {
	return skipped(t.DataAtom) || unshown(t) && t.DataAtom != atom.Html && t.DataAtom != atom.Body && !isVoid(t.DataAtom)
}

// skipped are the elements of which nothing is shown.
func skipped(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Iframe, atom.Object, atom.Select, atom.Title,
		atom.Noembed, atom.Noframes, atom.Datalist, atom.Audio, atom.Video, atom.Canvas:
		return true
	default:
		return false
	}
}

// unshown reports whether an element's attributes hide it.
func unshown(t html.Token) bool {
	for _, a := range t.Attr {
		switch {
		case a.Key == "hidden" && !strings.EqualFold(a.Val, "until-found"):
			return true
		case a.Key == "style" && hides(a.Val):
			return true
		}
	}
	return t.DataAtom == atom.Dialog && !has(t, "open")
}

func has(t html.Token, name string) bool {
	for _, a := range t.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

// hides reports whether an element with this style is not seen.
func hides(style string) bool {
	for declaration := range strings.SplitSeq(uncommented(style), ";") {
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

// uncommented returns a style without its comments.
func uncommented(style string) string {
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
