// Package documents makes documents for tests: PDF, Word, Excel and PowerPoint, good ones
// and hostile ones.
package documents

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"fmt"
	"html"
	"strings"
	"time"
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

// File is a file of a ZIP file.
type File struct{ Name, Content string }

// ZIP returns a ZIP file with the files.
func ZIP(files ...File) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		entry, err := w.Create(f.Name)
		if err == nil {
			_, err = entry.Write([]byte(f.Content))
		}
		if err != nil {
			panic(err) // into memory nothing fails
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

const header = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`

// Word returns a Word document with that XML as its body.
func Word(body string) []byte {
	return ZIP(
		File{"[Content_Types].xml", header + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`},
		File{"word/document.xml", header + `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>` + body + `</w:body></w:document>`},
	)
}

// Paragraphs is the body of a Word document with a paragraph for each text.
func Paragraphs(texts ...string) string {
	var out strings.Builder
	for _, text := range texts {
		fmt.Fprintf(&out, "<w:p><w:r><w:t>%s</w:t></w:r></w:p>", text)
	}
	return out.String()
}

// PowerPoint returns a presentation with a slide for each text; the order of its files is
// not that of its slides.
func PowerPoint(slides ...string) []byte {
	files := []File{{"[Content_Types].xml", header + "<Types/>"}}
	var rels, ids strings.Builder
	for i, text := range slides {
		n := len(slides) - i
		fmt.Fprintf(&rels, `<Relationship Id="rId%d" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/slide" Target="slides/slide%d.xml"/>`, i, n)
		fmt.Fprintf(&ids, `<p:sldId id="%d" r:id="rId%d"/>`, 256+i, i)
		files = append(files, File{fmt.Sprintf("ppt/slides/slide%d.xml", n), header + "<p:sld><a:p><a:r><a:t>" + text + "</a:t></a:r></a:p></p:sld>"})
	}
	return ZIP(append(files,
		File{"ppt/_rels/presentation.xml.rels", header + "<Relationships>" + rels.String() + "</Relationships>"},
		File{"ppt/presentation.xml", header + "<p:presentation><p:sldIdLst>" + ids.String() + "</p:sldIdLst></p:presentation>"},
	)...)
}

// Excel returns a workbook with a sheet that has these rows of strings, numbers and days, and
// a hidden sheet.
func Excel(sheet string, rows ...[]any) []byte {
	var cells, shared strings.Builder
	count := 0
	for i, row := range rows {
		fmt.Fprintf(&cells, `<row r="%d">`, i+1)
		for j, value := range row {
			switch value := value.(type) {
			case string:
				fmt.Fprintf(&cells, `<c r="%c%d" t="s"><v>%d</v></c>`, 'A'+j, i+1, count)
				fmt.Fprintf(&shared, `<si><r><t xml:space="preserve">%s</t></r><rPh><t>read aloud</t></rPh></si>`, html.EscapeString(value))
				count++
			case time.Time:
				const secondsPerDay, epoch = 86_400, 25_569 // 1970 in days since 1899-12-30
				fmt.Fprintf(&cells, `<c r="%c%d" s="1"><v>%v</v></c>`, 'A'+j, i+1, float64(value.Unix())/secondsPerDay+epoch)
			case nil:
			default:
				fmt.Fprintf(&cells, `<c r="%c%d"><f>SUM(1)</f><v>%v</v></c>`, 'A'+j, i+1, value)
			}
		}
		cells.WriteString("</row>")
	}
	const relation = `<Relationship Id="%s" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="%s"/>`
	return ZIP(
		File{"[Content_Types].xml", header + "<Types/>"},
		File{"xl/_rels/workbook.xml.rels", header + "<Relationships>" + fmt.Sprintf(relation, "rId1", "worksheets/sheet1.xml") + fmt.Sprintf(relation, "rId2", "/xl/worksheets/sheet2.xml") + "</Relationships>"},
		File{"xl/workbook.xml", header + `<workbook><sheets><sheet name="` + html.EscapeString(sheet) + `" sheetId="1" r:id="rId1"/><sheet name="Notes" sheetId="2" state="veryHidden" r:id="rId2"/></sheets></workbook>`},
		File{"xl/styles.xml", header + `<styleSheet><cellStyleXfs><xf numFmtId="0"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>`},
		File{"xl/sharedStrings.xml", header + "<sst>" + shared.String() + "</sst>"},
		File{"xl/worksheets/sheet1.xml", header + "<worksheet><sheetData>" + cells.String() + "</sheetData></worksheet>"},
		File{"xl/worksheets/sheet2.xml", header + `<worksheet><sheetData><row><c t="inlineStr"><is><t>not shown</t></is></c></row></sheetData></worksheet>`},
	)
}
