package term

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/mattn/go-runewidth"
)

// style is a set of text attributes. There are no colors: their readability depends on the
// terminal's background.
type style uint8

const (
	bold style = 1 << iota
	italic
	underline
	strike
)

const reset = "\x1b[0m"

// escapeCodes returns the escape sequence that turns the style on.
func (s style) escapeCodes() string {
	var codes []string
	for _, c := range []struct {
		bit  style
		code string
	}{{bold, "1"}, {italic, "3"}, {underline, "4"}, {strike, "9"}} {
		if s&c.bit != 0 {
			codes = append(codes, c.code)
		}
	}
	return "\x1b[" + strings.Join(codes, ";") + "m"
}

type span struct {
	text  string
	style style
}

type frame struct {
	width int    // columns of a row, including its prefix
	first string // prefix of the first row
	rest  string // prefix of the other rows
	open  bool   // more text follows: the last word may be incomplete, and is left out
}

type row struct {
	text  string
	width int
}

// layoutText returns the spans in rows. The layout of an open text is a prefix of the layout
// of the text when it has grown.
func layoutText(spans []span, f frame) string {
	rows := layoutRows(spans, f)
	texts := make([]string, len(rows))
	for i, r := range rows {
		texts[i] = r.text
	}
	return strings.Join(texts, "\n")
}

// layoutRows lays the spans out. It breaks words only if they are longer than a row.
func layoutRows(spans []span, f frame) []row {
	p := page{frame: f}
	p.beginRow(f.first)
	cells := cellsOf(spans)
	var words []word
	for i, c := range cells {
		space := c.text == " "
		if n := len(words); n == 0 || words[n-1].space != space || !space && canBreakBetween(cells[i-1], c) {
			words = append(words, word{space: space})
		}
		w := &words[len(words)-1]
		w.cells = append(w.cells, c)
		w.width += c.width
	}
	for i, w := range words {
		if f.open && i == len(words)-1 && !w.space {
			break
		}
		if w.space {
			p.spaces = w.cells
			continue
		}
		if p.column > p.start && p.column+len(p.spaces)+w.width > p.frame.width {
			p.endRow()
			p.beginRow(p.rest)
		}
		for _, c := range p.spaces {
			p.putCell(c)
		}
		p.spaces = nil
		for _, c := range w.cells {
			if p.column > p.start && p.column+c.width > p.frame.width {
				p.endRow()
				p.beginRow(p.rest)
			}
			p.putCell(c)
		}
	}
	p.endRow()
	return p.rows
}

type page struct {
	frame
	rows   []row
	row    strings.Builder
	column int
	start  int // column where the row's text begins, after the prefix
	style  style
	spaces []cell // before the next word, if it fits on the same row
}

func (p *page) beginRow(prefix string) {
	p.row.Reset()
	p.row.WriteString(prefix)
	p.column = runewidth.StringWidth(prefix)
	p.start, p.style, p.spaces = p.column, 0, nil
}

func (p *page) endRow() {
	if p.style != 0 {
		p.row.WriteString(reset)
	}
	p.rows = append(p.rows, row{text: p.row.String(), width: p.column})
}

func (p *page) putCell(c cell) {
	if c.style != p.style {
		if p.style != 0 {
			p.row.WriteString(reset)
		}
		if c.style != 0 {
			p.row.WriteString(c.style.escapeCodes())
		}
		p.style = c.style
	}
	p.row.WriteString(c.text)
	p.column += c.width
}

type cell struct {
	text  string
	width int
	style style
}

// cellsOf splits spans into cells; a combining character belongs to the cell before it, if they have the same style.
func cellsOf(spans []span) []cell {
	var cells []cell
	for _, s := range spans {
		for parts := graphemes.FromString(s.text); parts.Next(); {
			c := cell{text: parts.Value(), style: s.style}
			if r, size := utf8.DecodeRuneInString(c.text); size == len(c.text) && unicode.IsSpace(r) && r != '\u00a0' {
				c.text = " "
			}
			c.width = runewidth.StringWidth(c.text)
			cells = append(cells, c)
		}
	}
	return cells
}

// word is a sequence of cells that is kept on one row, or the spaces between two words.
type word struct {
	cells []cell
	width int
	space bool
}

// canBreakBetween reports whether a row may end between two cells without a space: next to
// wide ones, but not before closing nor after opening punctuation.
func canBreakBetween(a, b cell) bool {
	const closing, opening = "、。，．・：；！？）」』】〉》〕］｝ーぁぃぅぇぉっゃゅょァィゥェォッャュョ…)].,:;!?", "（「『【〈《〔［｛(["
	if a.width < 2 && b.width < 2 {
		return false
	}
	return !strings.Contains(closing, b.text) && !strings.Contains(opening, a.text)
}
