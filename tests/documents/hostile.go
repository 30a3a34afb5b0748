package documents

import (
	"archive/zip"
	"bytes"
	"fmt"
	"slices"
	"strings"

	"bobbin/tests/seed"
)

// Sample is a document that is not what it seems to be.
type Sample struct {
	Name string
	Kind string // pdf, docx, xlsx or pptx: what it claims to be
	Make func() []byte
	Slow bool // to make, or to read
}

// Hostile returns n documents: those that are known to hurt readers, then good ones that
// are cut, changed and given out as others, the same ones every time.
func Hostile(n int) []Sample {
	samples := slices.Concat(hostilePDFs(), hostileFonts(), hostileOffice())
	good := []struct {
		kind string
		data []byte
	}{
		{"pdf", PDF("first page", "second page\nof two")}, {"docx", Word(Paragraphs("one", "two"))}, {"xlsx", Excel("Sheet", []any{"a", 1}, []any{"b", 2.5})}, {"pptx", PowerPoint("one", "two")},
	}
	random := seed.Fixed(1, 2)
	for len(samples) < n {
		i := len(samples)
		s := Sample{Kind: good[i%len(good)].kind}
		data := bytes.Clone(good[i%len(good)].data)
		switch i / len(good) % 4 {
		case 0:
			s.Name, data = "cut", data[:random.IntN(len(data))]
		case 1:
			s.Name = "bits changed"
			for range 1 + random.IntN(20) {
				data[random.IntN(len(data))] ^= 1 << random.IntN(8)
			}
		case 2:
			s.Name, s.Kind = "another kind", good[random.IntN(len(good))].kind
		default:
			s.Name = "a piece repeated"
			from, to := random.IntN(len(data)), random.IntN(len(data))
			piece := bytes.Repeat(data[min(from, to):max(from, to)], 1+random.IntN(50))
			data = append(data[:min(from, to):min(from, to)], append(piece, data[max(from, to):]...)...)
		}
		samples = append(samples, Sample{fmt.Sprintf("%s %d", s.Name, i), s.Kind, func() []byte { return data }, false})
	}
	return samples[:n]
}

// file builds a PDF of objects, of which the first is the catalog.
func file(trailer string, objects ...string) []byte {
	var f PDFFile
	for _, o := range objects {
		f.Add(o)
	}
	return f.Bytes(1, trailer)
}

func hostilePDFs() []Sample {
	const font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
	page := func(content string) []byte {
		return file("", catalog, "<</Type/Pages/Kids[3 0 R]/Count 1/Resources<</Font<</F1 5 0 R>>/XObject<</X 4 0 R>>>>>>", "<</Type/Page/Parent 2 0 R/Contents 4 0 R>>", content, font)
	}
	many := strings.Repeat("3 0 R ", 100_000)
	var deep PDFFile
	deep.Add(catalog)
	for i := range 100_000 {
		deep.Add(fmt.Sprintf("<</Type/Pages/Kids[%d 0 R %d 0 R]/Count 9>>", i+3, i+3))
	}
	good := PDF("some text")
	start := bytes.LastIndex(good, []byte("startxref"))
	loop := bytes.Replace(good, []byte("/Root 1 0 R"), fmt.Appendf(nil, "/Root 1 0 R/Prev %d", bytes.LastIndex(good[:start], []byte("xref\n"))), 1)
	key := "<" + strings.Repeat("41", 32) + ">"
	return []Sample{
		{"tree that holds itself", "pdf", func() []byte { return file("", catalog, "<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2>>") }, false},
		{"parents in a circle", "pdf", func() []byte {
			return file("", catalog, "<</Type/Pages/Kids[3 0 R]/Parent 3 0 R/Count 1>>", "<</Type/Page/Parent 2 0 R/Contents 4 0 R>>", Stream("BT /F1 9 Tf (x) Tj ET", ""))
		}, false},
		{"100,000 pages", "pdf", func() []byte {
			return file("", catalog, "<</Type/Pages/Kids["+many+"]/Count 100000>>", "<</Type/Page/Parent 2 0 R/Contents 4 0 R>>", Stream("BT (x) Tj ET", ""))
		}, true},
		{"a billion pages claimed", "pdf", func() []byte {
			return file("", catalog, "<</Type/Pages/Kids[3 0 R]/Count 1000000000>>", "<</Type/Page/Parent 2 0 R>>")
		}, false},
		{"deep tree", "pdf", func() []byte { return deep.Bytes(1, "") }, true},
		{"1 GiB of blanks", "pdf", func() []byte { return page(streamOf(" ", 1<<30)) }, true},
		{"256 MiB of text", "pdf", func() []byte { return page(streamOf("BT /F1 9 Tf (aaaaaaaaaaaaaaaa) Tj ", 8<<20)) }, true},
		{"one text of 256 MiB", "pdf", func() []byte { return page(Stream("BT /F1 9 Tf ("+strings.Repeat("a", 256<<20)+") Tj ET", "")) }, true},
		{"bomb in a bomb", "pdf", func() []byte {
			return page(strings.Replace(Stream(Stream(strings.Repeat(" ", 64<<20), "")[60:], ""), "/FlateDecode", "[/FlateDecode/FlateDecode/FlateDecode]", 1))
		}, true},
		{"form that draws itself", "pdf", func() []byte {
			return page(Stream("BT /F1 9 Tf (x) Tj ET "+strings.Repeat("/X Do ", 100), "/Type/XObject/Subtype/Form"))
		}, false},
		{"nested arrays", "pdf", func() []byte { return page(Stream(strings.Repeat("[", 10<<20), "")) }, true},
		{"nested dictionaries", "pdf", func() []byte { return page(Stream(strings.Repeat("<</a", 10<<20), "")) }, true},
		{"nested arrays in the file", "pdf", func() []byte { return file("", catalog, strings.Repeat("[", 5<<20)) }, true},
		{"saved states", "pdf", func() []byte { return page(Stream(strings.Repeat("q ", 10<<20), "")) }, false},
		{"operands without operators", "pdf", func() []byte { return page(Stream(strings.Repeat("1 ", 32<<20), "")) }, true},
		{"xref in a circle", "pdf", func() []byte { return loop }, true},
		{"length that is a circle", "pdf", func() []byte {
			return file("", catalog, "<</Type/Pages/Kids[3 0 R]>>", "<</Type/Page/Contents 4 0 R>>", "<</Length 4 0 R>>stream\nx\nendstream")
		}, false},
		{"reference to itself", "pdf", func() []byte { return file("", "1 0 R") }, false},
		{"password", "pdf", func() []byte {
			return file("/ID[<41><41>]/Encrypt<</Filter/Standard/V 2/R 3/Length 128/P -4/O "+key+"/U "+key+">>", catalog, "<</Type/Pages/Kids[]>>")
		}, false},
		{"encryption that is none", "pdf", func() []byte { return file("/Encrypt<</Filter/Standard/V 99/Length -8/O()/U()>>", catalog) }, false},
		{"script", "pdf", func() []byte {
			return file("", "<</Type/Catalog/Pages 2 0 R/OpenAction<</S/JavaScript/JS(app.launchURL('http://127.0.0.1/'))>>>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/AA<</O<</S/Launch/F(/bin/sh)>>>>>>")
		}, false},
		{"predictor without columns", "pdf", func() []byte {
			return page(strings.Replace(Stream("text", ""), "/Filter", "/DecodeParms<</Predictor 15/Columns 2000000000>>/Filter", 1))
		}, false},
		{"numbers out of range", "pdf", func() []byte {
			return page(Stream("BT /F1 1e999 Tf 1e308 0 0 1e308 1e308 -1e308 Tm [(a)-99999999999999999999(b)] TJ ET", ""))
		}, false},
	}
}

// catalog is the first object of a PDF whose second is the tree of its pages.
const catalog = "<</Type/Catalog/Pages 2 0 R>>"

// hostileFonts are PDFs whose fonts are large or endless, and some that are hardly any.
func hostileFonts() []Sample {
	fontPage := func(font, cmap string) []byte {
		return file("", catalog, "<</Type/Pages/Kids[3 0 R]/Count 1/Resources<</Font<</F1 5 0 R>>>>>>", "<</Type/Page/Parent 2 0 R/Contents 4 0 R>>",
			Stream("BT /F1 9 Tf "+strings.Repeat("<00410042> Tj ", 1000)+"ET", ""), font, Stream(cmap, ""))
	}
	return []Sample{
		{"only a header", "pdf", func() []byte { return []byte("%PDF-1.7") }, false},
		{"header and noise", "pdf", func() []byte {
			return append([]byte("%PDF-1.4\n"), bytes.Repeat([]byte("obj endobj xref trailer startxref 0 %%EOF"), 50_000)...)
		}, false},
		{"range of four billion codes", "pdf", func() []byte {
			return fontPage("<</Subtype/Type0/Encoding/Identity-H/ToUnicode 6 0 R/DescendantFonts[<</W[0 4294967295 500]>>]>>", "1 begincodespacerange<00000000><FFFFFFFF>endcodespacerange 1 beginbfrange<00000000><FFFFFFFF><0041>endbfrange")
		}, false},
		{"many ranges", "pdf", func() []byte {
			return fontPage("<</Subtype/Type0/Encoding/Identity-H/ToUnicode 6 0 R>>", strings.Repeat("1 beginbfrange<0000><FFFF>["+strings.Repeat("<0041>", 1000)+"]endbfrange ", 500))
		}, true},
		{"many differences", "pdf", func() []byte {
			return fontPage("<</Subtype/Type1/Encoding<</Differences["+strings.Repeat("1/A ", 200_000)+"]>>>>", "")
		}, true},
	}
}

func hostileOffice() []Sample {
	const types = "<Types/>"
	names := map[string]string{"docx": "word/document.xml", "xlsx": "xl/workbook.xml", "pptx": "ppt/presentation.xml"}
	part := func(kind, name string, content func() string, slow bool) Sample {
		return Sample{name, kind, func() []byte { return ZIP(File{"[Content_Types].xml", types}, File{names[kind], content()}) }, slow}
	}
	entries := make([]File, 200_000)
	for i := range entries {
		entries[i].Name = fmt.Sprint("word/", i)
	}
	sheet := func(name, sheet string) Sample {
		return Sample{name, "xlsx", func() []byte {
			return ZIP(File{"[Content_Types].xml", types},
				File{"_rels/.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>`},
				File{"xl/_rels/workbook.xml.rels", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`},
				File{"xl/workbook.xml", `<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>`},
				File{"xl/worksheets/sheet1.xml", `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>` + sheet + `</sheetData></worksheet>`})
		}, false}
	}
	var laughs strings.Builder
	laughs.WriteString(`<!DOCTYPE w [<!ENTITY a "ha">`)
	for c := 'b'; c <= 'z'; c++ {
		fmt.Fprintf(&laughs, `<!ENTITY %c "%s">`, c, strings.Repeat(fmt.Sprintf("&%c;", c-1), 10))
	}
	laughs.WriteString("]><w:t>&z;</w:t>")
	return []Sample{
		part("docx", "1 GiB of paragraphs", func() string { return strings.Repeat("<w:p/>", 1<<30/6) }, true),
		part("xlsx", "1 GiB of sheets", func() string { return strings.Repeat("<sheet/>", 1<<30/8) }, true),
		part("pptx", "1 GiB of slides", func() string { return strings.Repeat("<sldId/>", 1<<30/8) }, true),
		part("docx", "nested elements", func() string { return strings.Repeat("<w:p>", 10<<20) }, true),
		part("docx", "a billion laughs", func() string { return laughs.String() }, false),
		part("docx", "a file of the machine", func() string { return `<!DOCTYPE w [<!ENTITY a SYSTEM "file:///etc/passwd">]><w:t>&a;</w:t>` }, false),
		part("docx", "one element of 60 MiB", func() string { return "<w:p " + strings.Repeat(`a="" `, 12<<20) + "/>" }, true),
		part("docx", "one name of 60 MiB", func() string { return "<" + strings.Repeat("a", 60<<20) + ">" }, true),
		{"200,000 files", "docx", func() []byte {
			return ZIP(append(entries, File{"word/document.xml", Paragraphs("text")}, File{"[Content_Types].xml", types})...)
		}, true},
		{"a size that is a lie", "docx", func() []byte { return lie(Word(strings.Repeat("<w:p/>", 20<<20))) }, true},
		sheet("a cell at the end of a sheet", `<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>x</t></is></c></row>`),
		sheet("wide rows", strings.Repeat(`<row><c r="XFD1"><v>1</v></c></row>`, 20_000)),
		sheet("a row far beyond", `<row r="2000000000"><c r="ZZZZZZ2000000000"><v>1</v></c></row>`),
		sheet("shared strings that are not there", strings.Repeat(`<row><c t="s"><v>4000000000</v></c></row>`, 1000)),
		sheet("a formula", `<row><c r="A1"><f>WEBSERVICE("http://127.0.0.1/")</f></c></row>`),
		{"a slide that is the presentation", "pptx", func() []byte {
			return ZIP(File{"ppt/_rels/presentation.xml.rels", `<R><Relationship Id="1" Type="x/slide" Target="presentation.xml"/></R>`},
				File{"ppt/presentation.xml", `<p>` + strings.Repeat(`<p:sldId r:id="1"/>`, 100_000) + `</p>`}, File{"[Content_Types].xml", types})
		}, true},
		{"names above the folder", "docx", func() []byte {
			return ZIP(File{"../../etc/passwd", "x"}, File{"word/document.xml", Paragraphs("text")}, File{"[Content_Types].xml", types})
		}, false},
	}
}

// lie makes the directory of a ZIP file say that its files are small.
func lie(data []byte) []byte {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		panic(err)
	}
	for _, f := range r.File {
		size := []byte{byte(f.UncompressedSize64), byte(f.UncompressedSize64 >> 8), byte(f.UncompressedSize64 >> 16), byte(f.UncompressedSize64 >> 24)}
		if f.UncompressedSize64 > 1<<20 {
			data = bytes.ReplaceAll(data, size, []byte{100, 0, 0, 0})
		}
	}
	return data
}
