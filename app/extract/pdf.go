package extract

import (
	"bytes"
	"errors"
	"math"
	"strings"

	"github.com/ledongthuc/pdf"
)

// readPDF sends the text of each page.
func readPDF(data []byte, w *writer) error {
	r, err := pdf.NewReader(bytes.NewReader(data), int64(len(data)))
	switch {
	case errors.Is(err, pdf.ErrInvalidPassword):
		return faultLocked
	case err != nil:
		return err
	}
	root := r.Trailer().Key("Root").Key("Pages")
	pages := pageTree{}
	if pages.addNode(root, 0); len(pages.leaves) == 0 {
		return faultBroken
	}
	if err := w.writePageCount(len(pages.leaves)); err != nil {
		return err
	}
	fonts := fontCache{}
	for i, page := range pages.leaves {
		if err := w.writePage("page", i+1, pageText(page, fonts)); err != nil {
			return err
		}
	}
	if pages.full {
		return errFull
	}
	return nil
}

// pageTree collects the pages of a document in order. Depth and nodes are limited, as a hostile
// document may have cycles.
type pageTree struct {
	leaves []pdf.Value
	nodes  int
	full   bool // the document has more pages
}

func (t *pageTree) addNode(node pdf.Value, depth int) {
	t.nodes++
	if depth > maxDepth {
		t.full = true
		return
	}
	kids := node.Key("Kids")
	if kids.Kind() != pdf.Array {
		if node.Kind() == pdf.Dict {
			t.leaves = append(t.leaves, node)
		}
		return
	}
	for i := range kids.Len() {
		if len(t.leaves) >= maxPages || t.nodes > 2*maxPages {
			t.full = true
			return
		}
		t.addNode(kids.Index(i), depth+1)
	}
}

// pageText returns the text of a page up to the first part that the library cannot parse.
func pageText(page pdf.Value, fonts fontCache) (text string) {
	p := painter{fonts: fonts, ctm: identityMatrix(), hscale: 1}
	defer func() {
		if recover() != nil {
			text = p.out.String()
		}
	}()
	p.runStream(page.Key("Contents"), inheritedEntry(page, "Resources"), 0)
	return p.out.String()
}

// inheritedEntry returns an entry of a page, or of its nearest ancestor that has it.
func inheritedEntry(page pdf.Value, key string) pdf.Value {
	for range maxDepth {
		if v := page.Key(key); !v.IsNull() || page.IsNull() {
			return v
		}
		page = page.Key("Parent")
	}
	return pdf.Value{}
}

// matrix is a PDF matrix [a b c d e f] (ISO 32000-1, 8.3.3).
type matrix [6]float64

func identityMatrix() matrix { return matrix{1, 0, 0, 1, 0, 0} }

// mul returns the matrix that applies m, then n.
func (m matrix) mul(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

// painter executes the operators of a page that place text. It keeps the drawing order, and
// separates words and lines by their positions.
type painter struct {
	out   strings.Builder
	fonts fontCache
	forms int // number of drawn forms

	ctm    matrix
	saved  []matrix
	tm     matrix // where the next character goes
	line   matrix // where its line begins
	font   *font
	size   float64
	lead   float64 // between lines
	chars  float64 // added after each character
	words  float64 // added after each blank
	hscale float64

	drawn bool    // some text was drawn
	x, y  float64 // where the last text ended
}

// runStream executes a content stream.
func (p *painter) runStream(stream, resources pdf.Value, depth int) {
	pdf.Interpret(stream, func(stack *pdf.Stack, op string) {
		args := make([]pdf.Value, stack.Len())
		for i := len(args) - 1; i >= 0; i-- {
			args[i] = stack.Pop()
		}
		p.executeOperator(op, operands(args), resources, depth)
	})
}

// operands are the arguments of an operator.
type operands []pdf.Value

func (o operands) at(i int) pdf.Value {
	if i < len(o) {
		return o[i]
	}
	return pdf.Value{}
}

func (o operands) numberAt(i int) float64 { return o.at(i).Float64() }

func (o operands) asMatrix() matrix {
	var m matrix
	for i := range m {
		m[i] = o.numberAt(i)
	}
	return m
}

func (p *painter) executeOperator(op string, args operands, resources pdf.Value, depth int) {
	switch op {
	case "q":
		if len(p.saved) < maxDepth*maxDepth {
			p.saved = append(p.saved, p.ctm)
		}
	case "Q":
		if n := len(p.saved); n > 0 {
			p.ctm, p.saved = p.saved[n-1], p.saved[:n-1]
		}
	case "cm":
		p.ctm = args.asMatrix().mul(p.ctm)
	case "Do":
		p.drawForm(resources.Key("XObject").Key(args.at(0).Name()), resources, depth)
	case "Tf":
		p.font, p.size = p.fonts.fontOf(resources.Key("Font").Key(args.at(0).Name())), args.numberAt(1)
	case "Tj":
		p.drawText(args.at(0).RawString())
	case "TJ":
		pieces := args.at(0)
		for i := range pieces.Len() {
			piece := pieces.Index(i)
			if piece.Kind() == pdf.String {
				p.drawText(piece.RawString())
				continue
			}
			p.advanceBy(-piece.Float64() / 1000 * p.size)
		}
	case "'":
		p.moveLine(0, -p.lead)
		p.drawText(args.at(0).RawString())
	case "\"":
		p.words, p.chars = args.numberAt(0), args.numberAt(1)
		p.moveLine(0, -p.lead)
		p.drawText(args.at(2).RawString())
	default:
		switch op {
		case "BT":
			p.tm, p.line = identityMatrix(), identityMatrix()
		case "Tm":
			p.tm = args.asMatrix()
			p.line = p.tm
		case "Td":
			p.moveLine(args.numberAt(0), args.numberAt(1))
		case "TD":
			p.lead = -args.numberAt(1)
			p.moveLine(args.numberAt(0), args.numberAt(1))
		case "T*":
			p.moveLine(0, -p.lead)
		case "TL":
			p.lead = args.numberAt(0)
		case "Tc":
			p.chars = args.numberAt(0)
		case "Tw":
			p.words = args.numberAt(0)
		case "Tz":
			p.hscale = args.numberAt(0) / 100
		}
	}
}

// maxForms is how many forms a page may draw.
const maxForms = 1000

// drawForm executes a form, a content stream that a page refers to by name.
func (p *painter) drawForm(form, resources pdf.Value, depth int) {
	if form.Key("Subtype").Name() != "Form" || depth > maxDepth/4 || p.forms > maxForms {
		return
	}
	p.forms++
	own := form.Key("Resources")
	if own.IsNull() {
		own = resources
	}
	before, saved := p.ctm, p.saved
	if m := form.Key("Matrix"); m.Len() == len(matrix{}) {
		var by matrix
		for i := range by {
			by[i] = m.Index(i).Float64()
		}
		p.ctm = by.mul(p.ctm)
	}
	p.runStream(form, own, depth+1)
	p.ctm, p.saved = before, saved
}

// moveLine begins a line at an offset from the beginning of the last one.
func (p *painter) moveLine(x, y float64) {
	p.line = matrix{1, 0, 0, 1, x, y}.mul(p.line)
	p.tm = p.line
}

// wordGap is the distance from which two texts of a line are separated by a blank, in parts of
// the font size.
const wordGap = 0.18

// advanceBy moves along the line.
func (p *painter) advanceBy(by float64) { p.tm = matrix{1, 0, 0, 1, by * p.hscale, 0}.mul(p.tm) }

// drawText draws a text.
func (p *painter) drawText(raw string) {
	if p.font == nil || raw == "" {
		return
	}
	at := p.tm.mul(p.ctm)
	size := math.Abs(p.size) * math.Hypot(at[2], at[3])
	text, width := p.font.decode(raw)
	x := at[4]
	y := at[5]
	gap := wordGap * size
	switch {
	case !p.drawn:
	case math.Abs(y-p.y) > size/2:
		p.out.WriteString("\n")
	case x < p.x-4*size:
		p.out.WriteString("\n")
	case x-p.x > gap && !strings.HasPrefix(text, " ") && !strings.HasSuffix(p.out.String(), " "):
		p.out.WriteString(" ")
	}
	p.out.WriteString(text)
	blanks := float64(strings.Count(text, " "))
	p.advanceBy(width/1000*p.size + p.chars*float64((len(raw)+p.font.bytes-1)/p.font.bytes) + p.words*blanks)
	end := p.tm.mul(p.ctm)
	p.x, p.y, p.drawn = end[4], end[5], true
}
