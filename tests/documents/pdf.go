// Package documents makes documents for tests: PDF, Word, Excel and PowerPoint, good ones
// and hostile ones.
package documents

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
)

// PDFFile is a PDF in the making.
type PDFFile struct {
	out     bytes.Buffer
	offsets []int
}

// Add appends an object and returns its number.
func (f *PDFFile) Add(body string) int {
	if f.out.Len() == 0 {
		f.out.WriteString("%PDF-1.7\n")
	}
	f.offsets = append(f.offsets, f.out.Len())
	fmt.Fprintf(&f.out, "%d 0 obj\n%s\nendobj\n", len(f.offsets), body)
	return len(f.offsets)
}

// Stream is the body of an object that is a compressed stream.
func Stream(content, entries string) string { return stream(content, 1, entries) }

// streamOf is a Stream of one text many times.
func streamOf(piece string, times int) string {
	const batch = 1 << 10
	return stream(strings.Repeat(piece, batch), times/batch, "")
}

func stream(content string, times int, entries string) string {
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	for range times {
		_, _ = w.Write([]byte(content))
	}
	_ = w.Close()
	return fmt.Sprintf("<</Length %d/Filter/FlateDecode%s>>stream\n%s\nendstream", packed.Len(), entries, packed.String())
}

// Bytes ends the file; root is the number of its catalog, trailer has further entries.
func (f *PDFFile) Bytes(root int, trailer string) []byte {
	start := f.out.Len()
	fmt.Fprintf(&f.out, "xref\n0 %d\n0000000000 65535 f \n", len(f.offsets)+1)
	for _, at := range f.offsets {
		fmt.Fprintf(&f.out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&f.out, "trailer<</Size %d/Root %d 0 R%s>>\nstartxref\n%d\n%%%%EOF", len(f.offsets)+1, root, trailer, start)
	return f.out.Bytes()
}

// PDF returns a PDF with a page for each text, its lines drawn below each other. A page
// with an empty text has a drawing.
func PDF(pages ...string) []byte {
	contents := make([]string, len(pages))
	for i, text := range pages {
		contents[i] = Content(text)
	}
	return PDFOf("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>", contents...)
}

// Content is the content stream of a page with that text.
func Content(text string) string {
	if text == "" {
		return "0 0 100 100 re f"
	}
	var out strings.Builder
	out.WriteString("BT /F1 10 Tf 14 TL 50 750 Td\n")
	for line := range strings.Lines(text) {
		fmt.Fprintf(&out, "(%s) Tj T*\n", strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`).Replace(strings.TrimRight(line, "\n")))
	}
	out.WriteString("ET")
	return out.String()
}

// PDFOf returns a PDF with a page for each content stream, which know the font as F1.
func PDFOf(font string, contents ...string) []byte {
	const objects, first = 2, 4 // a page and its content; the number of the first page
	var f PDFFile
	f.Add("<</Type/Catalog/Pages 2 0 R>>")
	var kids strings.Builder
	for i := range contents {
		fmt.Fprintf(&kids, "%d 0 R ", first+objects*i)
	}
	f.Add(fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d/Resources<</Font<</F1 3 0 R>>>>>>", kids.String(), len(contents)))
	f.Add(font)
	for i, content := range contents {
		f.Add(fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R>>", first+objects*i+1))
		f.Add(Stream(content, ""))
	}
	return f.Bytes(1, "")
}
