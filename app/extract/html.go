package extract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"bobbin/app/core"
)

const (
	xhtml      = "application/xhtml+xml"
	pageURL    = "BOBBIN_PAGE_URL" // environment variable of the child: the address of the page
	maxAddress = 2048              // bytes of a link's address; a longer one is left out
)

// ReadPage returns the text of a web page in UTF-8 as Markdown, at most 1 MiB. Links are absolute;
// those to anything but web pages become text. Text that the page hides from its readers is left
// out, which does not protect against instructions in the visible text.
func (r *Reader) ReadPage(ctx context.Context, mediaType, address, page string) (core.WebPage, error) {
	a := answer{isPage: true}
	switch err := r.runChild(ctx, mediaType, []byte(page), &a, pageURL+"="+address); {
	case ctx.Err() != nil:
		return core.WebPage{}, ctx.Err()
	case a.fault != "", err != nil && !a.begun && endedByLimit(err):
		return core.WebPage{}, errors.New("the page is nested too deeply, or reading it takes too much time or memory")
	case err != nil && !a.begun:
		return core.WebPage{}, fmt.Errorf("read page: %w", err)
	}
	return core.WebPage{Title: a.title, Text: a.text.String(), HasHidden: a.hidden, Cut: a.cut || !a.ended}, nil
}

// emptyElement is an element of XHTML that ends where it begins, and in HTML does not.
var emptyElement = regexp.MustCompile(`<(a|div|iframe|p|script|span|style|td|textarea|title)\b([^<>]*)/>`)

// readHTML sends the title and the visible text of a page.
func readHTML(mediaType string, page []byte, w *writer) error {
	if mediaType == xhtml {
		page = emptyElement.ReplaceAll(page, []byte("<$1$2></$1>"))
	}
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		return err
	}
	p := pageReader{}
	p.base, _ = url.Parse(os.Getenv(pageURL))
	p.clean(root)
	markdown := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled), converter.WithPlugins(
		base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal))))
	text, err := markdown.ConvertNode(root)
	if err != nil {
		return err
	}
	if err := w.out.Encode(frame{Hidden: p.hasHidden}); err != nil {
		return err
	}
	return w.writeText(strings.Join(strings.Fields(p.title), " "), string(text))
}

// pageReader prepares the tree of a page for its conversion.
type pageReader struct {
	base      *url.URL // of the page's links
	hasBase   bool     // the page has set it
	title     string
	hasHidden bool // hidden text was left out
}

// clean removes what is not shown below n, and makes links absolute and images text.
func (p *pageReader) clean(n *html.Node) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		switch {
		case c.Type == html.CommentNode, isNeverShown(c.DataAtom):
			if c.DataAtom == atom.Title && p.title == "" {
				p.title = textOf(c)
			}
			n.RemoveChild(c)
		case c.Type == html.ElementNode && isHidden(c):
			p.hasHidden = p.hasHidden || strings.TrimSpace(textOf(c)) != ""
			n.RemoveChild(c)
		default:
			p.readElement(c)
			p.clean(c)
		}
		c = next
	}
}

func (p *pageReader) readElement(n *html.Node) {
	switch n.DataAtom {
	case atom.Base:
		if to := p.absoluteURL(n); to != "" && !p.hasBase {
			p.base, _ = url.Parse(to)
			p.hasBase = true
		}
	case atom.A:
		if to := p.absoluteURL(n); to != "" {
			n.Attr = []html.Attribute{{Key: "href", Val: to}}
		} else {
			n.Data, n.DataAtom, n.Attr = "span", atom.Span, nil
		}
	case atom.Img:
		alt := strings.TrimSpace(attribute(n, "alt"))
		*n = html.Node{Type: html.TextNode, Parent: n.Parent, PrevSibling: n.PrevSibling, NextSibling: n.NextSibling}
		if alt != "" {
			n.Data = "[image: " + alt + "]"
		}
	case atom.Textarea: // which the library leaves out
		n.Data, n.DataAtom = "p", atom.P
	default:
	}
}

// absoluteURL returns the address of another web page that an element names; empty = none.
func (p *pageReader) absoluteURL(n *html.Node) string {
	href := strings.TrimSpace(attribute(n, "href"))
	if href == "" || href[0] == '#' || p.base == nil {
		return ""
	}
	to, err := p.base.Parse(href)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.User != nil || len(to.String()) > maxAddress {
		return ""
	}
	return to.String()
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// textOf returns the text below n, except that of elements that are never shown.
func textOf(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode && !isNeverShown(c.Parent.DataAtom) || c.Type == html.TextNode && c.Parent == n {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

// Text that a page hides from its readers must not reach a model: instructions are hidden
// there. These functions recognize elements that are never shown, the attribute hidden,
// and an element's own style; not what style sheets and scripts of the page hide.

// isNeverShown reports whether browsers show nothing of an element's text.
func isNeverShown(a atom.Atom) bool {
	return slices.Contains([]atom.Atom{
		atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Iframe, atom.Object, atom.Select, atom.Title,
		atom.Noembed, atom.Noframes, atom.Datalist, atom.Audio, atom.Video, atom.Canvas,
	}, a)
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
