package extract_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/attach"
	"bobbin/app/extract"
	"bobbin/tests/compare"
	"bobbin/tests/documents"
	"bobbin/tests/must"
)

// The text of each kind of document is read.
func TestRead(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	utf16 := "/CIDInit/ProcSet findresource begin 12 dict begin begincmap 1 begincodespacerange<0000><FFFF>endcodespacerange\n" +
		"1 beginbfchar<0001><00480069>endbfchar 1 beginbfrange<0010><0012><0061>endbfrange 1 beginbfrange<0020><0021>[<65E5><672C>]endbfrange endcmap end end"
	var subset documents.PDFFile
	subset.Add("<</Type/Catalog/Pages 2 0 R>>")
	subset.Add("<</Type/Pages/Kids[3 0 R]/Count 1>>")
	subset.Add("<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>/XObject<</X 7 0 R>>>>>>")
	subset.Add(documents.Stream("BT /F1 10 Tf 1 0 0 1 50 700 Tm <00010010> Tj [<0011>-20<0012>-400<0020>] TJ ET /X Do", ""))
	subset.Add("<</Type/Font/Subtype/Type0/Encoding/Identity-H/ToUnicode 6 0 R/DescendantFonts[<</Subtype/CIDFontType2/DW 500>>]>>")
	subset.Add(documents.Stream(utf16, ""))
	subset.Add(documents.Stream("BT /F1 10 Tf 1 0 0 1 50 680 Tm <0021> Tj ET", "/Type/XObject/Subtype/Form"))
	for name, tt := range map[string]struct {
		kind string
		data []byte
		want core.DocumentText
	}{
		"PDF":             {attach.PDF, documents.PDF("First line\nsecond (line)", "Page two"), core.DocumentText{Text: "[page 1]\nFirst line\nsecond (line)\n\n[page 2]\nPage two", Pages: 2}},
		"PDF, scanned":    {attach.PDF, documents.PDF("", ""), core.DocumentText{Text: "[none of its 2 pages has text: they are scanned or drawn, and their content is missing here]", Pages: 2, Blank: 2}},
		"PDF, partly":     {attach.PDF, documents.PDF("a", "", "", "b", ""), core.DocumentText{Text: "[3 of 5 pages have no text: they are scanned or drawn, and their content is missing here: 2–3, 5]\n[page 1]\na\n\n[page 4]\nb", Pages: 5, Blank: 3}},
		"PDF, own codes":  {attach.PDF, subset.Bytes(1, ""), core.DocumentText{Text: "[page 1]\nHiabc 日\n本", Pages: 1}},
		"PDF, words":      {attach.PDF, documents.PDFOf("<</Type/Font/Subtype/Type1/BaseFont/Times-Roman>>", "BT /F1 12 Tf 10 700 Td [(Ker)20(ned)-333(wo )-250(rds)] TJ 200 0 Td (far) Tj ET"), core.DocumentText{Text: "[page 1]\nKerned wo rds far", Pages: 1}},
		"PDF, a bad page": {attach.PDF, documents.PDFOf("<</Type/Font/Subtype/Type1/BaseFont/Times-Roman>>", "BT /F1 12 Tf (be) Tj /F1 Tf << << ] (x) TJ", "BT /F1 9 Tf (fine) Tj ET"), core.DocumentText{Text: "[page 1]\nbe\n\n[page 2]\nfine", Pages: 2}},
		"Word": {attach.Word, documents.Word(`<w:p><w:pPr><w:pStyle w:val="Heading2"/></w:pPr><w:r><w:t>Title</w:t></w:r></w:p>` +
			`<w:p><w:r><w:t xml:space="preserve">A &amp; </w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>not seen</w:t></w:r><w:r><w:t>B</w:t><w:tab/><w:t>C</w:t></w:r></w:p>` +
			`<w:tbl><w:tr><w:tc><w:p><w:r><w:t>1</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>2</w:t></w:r></w:p></w:tc></w:tr></w:tbl>` +
			`<w:p><w:r><w:delText>gone</w:delText><w:instrText>HYPERLINK</w:instrText></w:r></w:p>`), core.DocumentText{Text: "## Title\nA & B\tC\n1 | 2"}},
		"Word, empty": {attach.Word, documents.Word(""), core.DocumentText{Text: "[it has no text]"}},
		"Excel": {attach.Excel, documents.Excel("Sales & more", []any{"Region", "Sum", "Day"}, []any{"North\nWest", 1200.5, day}, []any{}, []any{nil, 0.30000000000000004, "<end>"}),
			core.DocumentText{Text: "[sheet \"Sales & more\"]\nRegion\tSum\tDay\nNorth West\t1200.5\t2026-03-01\n\t0.3\t<end>\n\n[sheet \"Notes\" is hidden and was left out]"}},
		"Excel, formats": {attach.Excel, documents.ZIP(
			documents.File{Name: "xl/_rels/workbook.xml.rels", Content: `<Relationship Id="a" Target="s.xml"/>`},
			documents.File{Name: "xl/workbook.xml", Content: `<workbookPr date1904="1"/><sheet name="S" r:id="a"/>`},
			documents.File{Name: "xl/styles.xml", Content: `<numFmt numFmtId="164" formatCode="[$-409]d/m/yy h:mm"/><numFmt numFmtId="165" formatCode="0 &quot;days&quot;"/>` +
				`<cellXfs><xf numFmtId="164"/><xf numFmtId="165"/><xf numFmtId="20"/></cellXfs>`},
			documents.File{Name: "xl/s.xml", Content: `<row><c><v>1.5</v></c><c s="1"><v>7</v></c><c s="2"><v>0.25</v></c><c t="b"><v>1</v></c><c t="e"><v>#REF!</v></c><c t="str"><v>made</v></c><c t="s"><v>9</v></c></row>`}),
			core.DocumentText{Text: "[sheet \"S\"]\n1904-01-02 12:00:00\t7\t06:00:00\tTRUE\t#REF!\tmade"}},
		"PowerPoint": {attach.PowerPoint, documents.PowerPoint("Opening", "", "End"), core.DocumentText{Text: "[1 of 3 pages have no text: they are scanned or drawn, and their content is missing here: 2]\n[slide 1]\nOpening\n\n[slide 3]\nEnd", Pages: 3, Blank: 1}},
		"HTML":       {attach.HTML, []byte("<title>A  page</title><h1>News</h1><script>alert(1)</script><p hidden>no</p><p>One <a href='https://a.example/'>link</a>"), core.DocumentText{Text: "[A page]\n# News\n\nOne [link](https://a.example/)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok, err := newReader(t).Read(t.Context(), tt.kind, tt.data)
			must.True(t, err == nil && ok, "got %v, %v", ok, err)
			compare.Equal(t, "", tt.want, got)
		})
	}
}

// Text beyond the limit is left out, and a note tells the model.
func TestLongDocumentsAreCut(t *testing.T) {
	t.Parallel()
	const note = "\n[… the document continues; the rest is left out …]"
	page := strings.Repeat("the quick brown fox jumps over the lazy dog\n", 400)
	for name, tt := range map[string]struct {
		kind string
		data []byte
	}{
		"PDF":  {attach.PDF, documents.PDF(slicesOf(page, 100)...)},
		"Word": {attach.Word, documents.Word(documents.Paragraphs(slicesOf(page, 100)...))},
		"HTML": {attach.HTML, []byte("<p>" + strings.Repeat(page, 100))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := newReader(t).Read(t.Context(), tt.kind, tt.data)
			compare.True(t, err == nil && len(got.Text) >= 1<<20 && len(got.Text) <= 1<<20+2000 && strings.HasSuffix(got.Text, note), "got %d bytes and %v, want 1 MiB and a note", len(got.Text), err)
		})
	}
}

func slicesOf(text string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = text
	}
	return out
}

// What cannot be read is refused with what to do.
func TestRefusals(t *testing.T) {
	t.Parallel()
	bomb := strings.Repeat("<w:p/>", 16<<20)
	for name, tt := range map[string]struct {
		kind, words string
		data        []byte
	}{
		"no PDF":      {attach.PDF, "open it, save it again", []byte("%PDF-1.7\n%binary")},
		"cut PDF":     {attach.PDF, "open it, save it again", documents.PDF("a", "b")[:200]},
		"no pages":    {attach.PDF, "open it, save it again", documents.PDF()},
		"a password":  {attach.PDF, "protected by a password", encrypted()},
		"no Word":     {attach.Word, "open it, save it again", []byte("PK\x03\x04 word/document.xml")},
		"a bomb":      {attach.Word, "larger than 67.1 MB", documents.Word(bomb)},
		"Excel bomb":  {attach.Excel, "larger than 67.1 MB", documents.ZIP(documents.File{Name: "xl/workbook.xml", Content: bomb})},
		"no workbook": {attach.Excel, "open it, save it again", documents.ZIP(documents.File{Name: "xl/workbook.xml", Content: "<x"})},
		"no slides":   {attach.PowerPoint, "open it, save it again", documents.PowerPoint()},
		"entities": {attach.Word, "open it, save it again", documents.ZIP(documents.File{Name: "word/document.xml",
			Content: `<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><w:t>&a;</w:t>`})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok, err := newReader(t).Read(t.Context(), tt.kind, tt.data)
			compare.True(t, !ok && errors.Is(err, core.ErrInvalid) && strings.Contains(err.Error(), tt.words), "got %.200q, %v, want an error with %q", got.Text, err, tt.words)
		})
	}
}

// encrypted is a PDF whose password is not the empty one (ISO 32000-1, 7.6).
func encrypted() []byte {
	var f documents.PDFFile
	f.Add("<</Type/Catalog/Pages 2 0 R>>")
	f.Add("<</Type/Pages/Kids[]/Count 0>>")
	key := "<" + strings.Repeat("41", 32) + ">"
	return f.Bytes(1, "/ID[<41><41>]/Encrypt<</Filter/Standard/V 2/R 3/Length 128/P -4/O "+key+"/U "+key+">>")
}

// kinds are the media types of samples.
func kinds() map[string]string {
	return map[string]string{"pdf": attach.PDF, "docx": attach.Word, "xlsx": attach.Excel, "pptx": attach.PowerPoint}
}

// What hostile documents may take. The limits are those of the process; the rest is the
// program itself, and a machine that is busy.
const (
	mostText   = 1<<20 + 4096
	mostMemory = 512<<20 + 128<<20
	mostCPU    = 23 * time.Second
)

// Nothing that a document holds crashes the server, hangs it, or takes more memory, time
// and text than a document may: BOBBIN_TEST_LONG=1 reads 200, else those that are known
// and few others.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	n, reader, long := 70, newReader(t), os.Getenv("BOBBIN_TEST_LONG") != ""
	if long {
		n = 200
	}
	var taken, refused int
	var costs []cost
	for _, s := range documents.Hostile(n) {
		if s.Slow && !long {
			continue
		}
		kind, data := kinds()[s.Kind], s.Make()
		c := measure(t, s.Name, kind, data)
		costs = append(costs, c)
		compare.True(t, c.memory <= mostMemory && c.cpu <= mostCPU, "%s (%s): %d MiB and %s of CPU", s.Name, s.Kind, c.memory>>20, c.cpu)
		if s.Slow { // and was read to its limits
			continue
		}
		text, ok, err := reader.Read(t.Context(), kind, data)
		switch {
		case ok && err == nil && len(text.Text) <= mostText:
			taken++
		case errors.Is(err, core.ErrInvalid):
			refused++
		default:
			t.Errorf("%s (%s): got %d bytes, %v, %v", s.Name, s.Kind, len(text.Text), ok, err)
		}
	}
	sort.Slice(costs, func(i, j int) bool { return costs[i].cpu > costs[j].cpu })
	t.Logf("%d hostile documents: of those that are read quickly %d were read, in part or whole, %d refused", len(costs), taken, refused)
	for _, c := range costs[:5] {
		t.Logf("  most CPU: %-40s %6.2f s, %d MiB", c.name, c.cpu.Seconds(), c.memory>>20)
	}
	sort.Slice(costs, func(i, j int) bool { return costs[i].memory > costs[j].memory })
	for _, c := range costs[:5] {
		t.Logf("  most memory: %-37s %6.2f s, %d MiB", c.name, c.cpu.Seconds(), c.memory>>20)
	}
}

// cost is what the reading of a document took.
type cost struct {
	name   string
	cpu    time.Duration
	memory int64 // bytes
}

// measure reads a document in a process as the Reader does, and returns what it took.
func measure(t *testing.T, name, kind string, data []byte) cost {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // as the Reader does
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], extract.Command, kind)
	var out bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout = []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}, bytes.NewReader(data), &out
	must.Do(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ends is the Reader's matter
		close(ended)
	}()
	memory := int64(0)
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-ended:
			return cost{name, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), memory}
		case <-tick.C:
			memory = max(memory, peak(cmd.Process.Pid))
		}
	}
}

// peak returns the maximum memory of a process until now, where the system reports it.
func peak(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, line, _ := strings.Cut(string(status), "VmHWM:")
	kib := int64(0)
	_, _ = fmt.Sscan(line, &kib)
	return kib << 10
}

// TestMain makes the test's own program the one that reads documents.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == extract.Command {
		os.Exit(extract.Serve(os.Args[2], os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// newReader returns a Reader that works as the program's does.
func newReader(t testing.TB) *extract.Reader {
	t.Helper()
	program := must.Get(os.Executable())(t)
	return extract.NewReader(program)
}

// page reads a web page.
func page(t *testing.T, kind, body string) core.WebPage {
	t.Helper()
	return must.Get(newReader(t).ReadPage(t.Context(), kind, "http://a.example/dir/page", body))(t)
}

// A page becomes its title, headings, links, lists and paragraphs.
func TestReadableText(t *testing.T) {
	t.Parallel()
	got := page(t, "text/html", `<!DOCTYPE html><html><head><title>
 A  page &amp; more </title><style>p{}</style><script>alert("<p>no</p>")</script></head>
<body onload="x()"><nav><a href="/">Home</a> <a href="#top">Top</a></nav>
<h1>Great  <em>news</em></h1><p>One<br>two,
  three <a href="other?x=1">a <b>link</b></a>, <a href="javascript:alert(1)">no link</a>, <a href="http://u:p@x/">nor this</a>.</p>
<ul><li>first<li><p>second</p></li></ul>
<h2>Table</h2><table><tr><th>k</th><th>v</th></tr><tr><td>a</td><td>1</td></tr></table>
<pre>code  {
	x }</pre><img src="x.png" alt="a cat"><svg><text>drawing</text></svg><noscript>no</noscript><!-- comment -->
<template><p>no</p></template><textarea>typed</textarea></body></html>`)
	want := `[Home](http://a.example/) Top

# Great *news*

One  
two, three [a **link**](http://a.example/dir/other?x=1), no link, nor this.

- first
- second

## Table

| k | v |
|---|---|
| a | 1 |

` + "```\ncode  {\n\tx }\n```" + `

[image: a cat]

typed`
	compare.Equal(t, "text", want, got.Text)
	compare.Equal(t, "title, cut", []any{"A page & more", false}, []any{got.Title, got.Cut})
}

// What a page does not show to its readers is not shown to a model either, and the
// model is told that there was something.
func TestHiddenText(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ body, want string }{
		"attribute":            {`<p>a<p hidden>no<p>b`, "a\n\nb"},
		"with a value":         {`<div hidden="hidden">no</div>b`, "b"},
		"found by searching":   {`<div hidden="until-found">a</div>`, "a"},
		"display":              {`<span style="color: red; DISPLAY : None !important">no</span>b`, "b"},
		"with a comment":       {`<span style="display:/**/none">no</span>b`, "b"},
		"visibility":           {`<span style='visibility:hidden'>no</span>b`, "b"},
		"opacity":              {`<span style=opacity:0.0>no</span>b`, "b"},
		"no size":              {`<span style="font-size:0px">no</span>b`, "b"},
		"half visible":         {`<span style="opacity:.5;font-size:10px">a</span>b`, "ab"},
		"image":                {`<img alt=no hidden>b`, "b"},
		"elements that end it": {`<ul><li hidden>no<ul><li>no</ul>no<li>a</ul>b`, "- a\n\nb"},
		"cells":                {`<table><tr><td hidden>no<td>a<tr hidden><td>no<tr><td>b</table>c`, "|  |\n|---|\n| a |\n| b |\n\nc"},
		"never ended":          {`<section><div hidden>no<p>no</section>b`, "b"},
		"end of nothing":       {`<span>a<div hidden></span></b></p></li>no</div>b`, "ab"},
		"end of a paragraph":   {`<p>a<div hidden></p>no</div>b`, "a\n\nb"},
		"end outside a cell":   {`<div><table><tr><td><p hidden></div>no<p>a</table>b`, "|  |\n|---|\n| a |\n\nb"},
		"other elements":       {`<dialog>no</dialog><canvas>no</canvas><video>no</video><noembed>no</noembed>b`, "b"},
		"open dialog":          {`<dialog open>a</dialog>`, "a"},
		"the whole page":       {`<body style="opacity:0">a`, "a"},
		"ended at once":        {`<script/>no</script><div hidden/>no</div>b<svg/>c`, "bc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := page(t, "text/html", tt.body)
			hid := !slices.Contains([]string{"found by searching", "image", "half visible", "open dialog", "the whole page"}, name)
			compare.Equal(t, "text, hidden", []any{tt.want, hid}, []any{got.Text, got.HasHidden})
		})
	}
	compare.Equal(t, "XHTML: want what comes after elements that end at once", "a", page(t, "application/xhtml+xml", `<html><script src="x"/><div hidden=""/>a</html>`).Text)
}

// Every page is read or refused: none makes reading it slow, or its text long or invalid.
func TestAdversePages(t *testing.T) {
	t.Parallel()
	const most = 2 << 20
	for name, body := range map[string]string{
		"nested":          strings.Repeat("<div>", 200_000) + "x",
		"links in links":  strings.Repeat("<a href=x>", 20_000),
		"long addresses":  "<base href=x>" + strings.Repeat("<a href=x>y</a>", 20_000),
		"never closed":    "<script>" + strings.Repeat("x", most),
		"attributes":      "<p " + strings.Repeat("a=b ", 400_000) + ">x",
		"one long word":   "<p>" + strings.Repeat("x", most-100),
		"lists":           strings.Repeat("<ul><li>", 200_000),
		"entities":        strings.Repeat("&#0;&#xD800;&amp;", 100_000),
		"closing only":    strings.Repeat("</a></pre></li>", 100_000),
		"cut in a letter": strings.Repeat("ü", most/2+10),
		"styles again":    manyStyles() + strings.Repeat("<p>a", 16_000),
		"quotes in lists": strings.Repeat("<blockquote><ul><li>", 40) + strings.Repeat("<br>x", 5_000),
		"titles":          strings.Repeat("<title>x</title>", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newReader(t).ReadPage(t.Context(), "text/html", "http://a.example/", body)
			if err != nil && err.Error() != "the page is nested too deeply, or reading it takes too much time or memory" {
				t.Error(err)
			}
			if len(got.Text) > most || !utf8.ValidString(got.Text) {
				t.Errorf("got %d bytes, valid %v, title of %d", len(got.Text), utf8.ValidString(got.Text), len(got.Title))
			}
		})
	}
}

// manyStyles are styles that begin again in every paragraph: a tree of 1.1 GB with 16,000.
func manyStyles() string {
	var b strings.Builder
	for i := range 450 {
		fmt.Fprintf(&b, "<b class=c%d>", i)
	}
	return b.String()
}
