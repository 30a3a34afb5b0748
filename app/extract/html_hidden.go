package extract

import (
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Text that a page hides from its readers must not reach a model: instructions are hidden
// there. These functions recognize elements that are never shown, the attribute hidden,
// and an element's own style; not what style sheets and scripts of the page hide.

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

// isHidden reports whether an element's attributes hide it.
func isHidden(n *html.Node) bool {
	if n.DataAtom == atom.Html || n.DataAtom == atom.Body {
		return false
	}
	open := false
	for _, a := range n.Attr {
		switch {
		case a.Key == "hidden" && !strings.EqualFold(a.Val, "until-found"), a.Key == "style" && isHidingStyle(a.Val):
			return true
		case a.Key == "open":
			open = true
		}
	}
	return n.DataAtom == atom.Dialog && !open
}

// styleComment is a comment of a style, which the end of the style ends, too.
var styleComment = regexp.MustCompile(`(?s)/\*.*?(\*/|$)`)

// isHidingStyle reports whether an element with this style is invisible.
func isHidingStyle(style string) bool {
	for declaration := range strings.SplitSeq(styleComment.ReplaceAllString(style, ""), ";") {
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
