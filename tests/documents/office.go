package documents

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"

	"github.com/xuri/excelize/v2"
)

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

// Excel returns a workbook with a sheet that has these rows.
func Excel(sheet string, rows ...[]any) ([]byte, error) {
	book := excelize.NewFile()
	if err := book.SetSheetName("Sheet1", sheet); err != nil {
		return nil, err
	}
	for i, row := range rows {
		cell, err := excelize.CoordinatesToCellName(1, i+1)
		if err == nil {
			err = book.SetSheetRow(sheet, cell, &row)
		}
		if err != nil {
			return nil, err
		}
	}
	out, err := book.WriteToBuffer()
	if err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
