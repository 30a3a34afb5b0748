package extract

import (
	"strings"
	"unicode/utf16"

	"github.com/ledongthuc/pdf"
)

// averageWidth is the width of a character whose font does not define it, in thousandths of the
// font size.
const averageWidth = 500

// font maps the codes of a text to characters and widths.
type font struct {
	bytes   int // of a code
	unicode map[uint32]string
	room    int              // how many more codes are read
	encoder pdf.TextEncoding // if the font does not define its codes
	widths  map[uint32]float64
	missing float64
}

// fontCache holds the fonts that were read, by their description in the file.
type fontCache map[string]*font

// maxFonts is how many fonts are cached.
const maxFonts = 50

func (c fontCache) fontOf(v pdf.Value) *font {
	key := v.String() // contains references, which identify fonts
	if f, ok := c[key]; ok {
		return f
	}
	if len(c) >= maxFonts {
		clear(c)
	}
	f := &font{bytes: 1, unicode: map[uint32]string{}, room: maxCodes, widths: map[uint32]float64{}, missing: averageWidth}
	func() {
		defer func() { _ = recover() }()
		if v.Key("Subtype").Name() == "Type0" {
			f.bytes = 2
			f.readCompositeWidths(v.Key("DescendantFonts").Index(0))
		} else {
			first := v.Key("FirstChar").Int64()
			list := v.Key("Widths")
			for i := range min(list.Len(), 256) {
				f.widths[uint32(first)+uint32(i)] = list.Index(i).Float64()
			}
		}
		if v.Key("Subtype").Name() == "Type3" { // its widths are in its own space
			clear(f.widths)
		}
	}()
	func() {
		defer func() { _ = recover() }()
		if cmap := v.Key("ToUnicode"); cmap.Kind() == pdf.Stream {
			pdf.Interpret(cmap, func(stack *pdf.Stack, op string) {
				args := make(operands, stack.Len())
				for i := len(args) - 1; i >= 0; i-- {
					args[i] = stack.Pop()
				}
				switch op {
				case "endcodespacerange":
					if n := len(args.at(1).RawString()); n > 0 {
						f.bytes = min(n, 4)
					}
				case "endbfchar":
					for i := 0; i+1 < len(args); i += 2 {
						f.mapCodes(args[i], args[i], args[i+1])
					}
				case "endbfrange":
					for i := 0; i+2 < len(args); i += 3 {
						f.mapCodes(args[i], args[i+1], args[i+2])
					}
				}
			})
		}
	}()
	if len(f.unicode) == 0 {
		f.encoder = (&pdf.Font{V: v}).Encoder()
	}
	c[key] = f
	return f
}

// maxCodes is how many codes of a font are read.
const maxCodes = 1 << 16

// readCompositeWidths reads the widths of a font with two-byte codes: first code and list, or
// first, last and width.
func (f *font) readCompositeWidths(v pdf.Value) {
	f.missing = 1000
	if dw := v.Key("DW"); !dw.IsNull() {
		f.missing = dw.Float64()
	}
	w := v.Key("W")
	for i := 0; i+1 < w.Len(); {
		first := uint32(w.Index(i).Int64())
		if list := w.Index(i + 1); list.Kind() == pdf.Array {
			for j := range min(list.Len(), maxCodes) {
				f.widths[first+uint32(j)] = list.Index(j).Float64()
			}
			i += 2
			continue
		}
		last, width := uint32(w.Index(i+1).Int64()), w.Index(i+2).Float64()
		for code := first; code <= last && code-first < maxCodes; code++ {
			f.widths[code] = width
		}
		i += 3
	}
}

// mapCodes maps the codes of a range to the characters from text on, or to each of a list.
func (f *font) mapCodes(from, to, text pdf.Value) {
	last, units := codeOf(to.RawString()), utf16Units(text.RawString())
	for n, code := 0, codeOf(from.RawString()); code <= last && f.room > 0; n, code = n+1, code+1 {
		if text.Kind() == pdf.Array {
			units = utf16Units(text.Index(n).RawString())
		}
		f.unicode[code] = string(utf16.Decode(units))
		if f.room--; len(units) > 0 {
			units[len(units)-1]++
		}
	}
}

// codeOf returns the bytes as a number.
func codeOf(raw string) uint32 {
	n := uint32(0)
	for i := range min(len(raw), 4) {
		n = n<<8 | uint32(raw[i])
	}
	return n
}

// utf16Units returns the bytes as UTF-16 units.
func utf16Units(raw string) []uint16 {
	if len(raw) == 1 {
		return []uint16{uint16(raw[0])}
	}
	var out []uint16
	for i := 0; i+1 < len(raw); i += 2 {
		out = append(out, uint16(raw[i])<<8|uint16(raw[i+1]))
	}
	return out
}

// decode returns a text and its width in thousandths of the font size.
func (f *font) decode(raw string) (string, float64) {
	var out strings.Builder
	width := 0.0
	for i := 0; i < len(raw); i += f.bytes {
		c := codeOf(raw[i:min(i+f.bytes, len(raw))])
		w, ok := f.widths[c]
		if !ok {
			w = f.missing
		}
		width += w
		if f.encoder == nil {
			out.WriteString(f.unicode[c])
		}
	}
	if f.encoder != nil {
		return f.encoder.Decode(raw), width
	}
	return out.String(), width
}
