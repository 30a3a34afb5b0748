package extract

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"path"
	"strings"
)

// archive is an office document: a ZIP file of XML files.
type archive struct {
	files map[string]*zip.File
	room  int64 // remaining bytes that may be unpacked
}

// openArchive opens an office document. The size limit is checked while unpacking.
func openArchive(data []byte) (*archive, error) {
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	a := &archive{files: make(map[string]*zip.File, len(r.File)), room: maxUnpacked}
	for _, f := range r.File {
		a.files[f.Name] = f
	}
	return a, nil
}

// scanXML reads the XML file with the name and passes its tokens to visit; a missing file has
// none. Nesting is not tracked; names are compared without their namespace, and the document's
// own entities are unknown.
func (a *archive) scanXML(name string, visit func(xml.Token) error) error {
	f, ok := a.files[name]
	if !ok {
		return nil
	}
	if f.Flags&1 != 0 {
		return faultLocked
	}
	if f.UncompressedSize64 > uint64(a.room) {
		return faultUnpacked
	}
	content, err := f.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	limited := &io.LimitedReader{R: content, N: a.room + 1}
	d := xml.NewDecoder(limited)
	for {
		t, err := d.RawToken()
		if limited.N <= 0 {
			return faultUnpacked
		}
		if errors.Is(err, io.EOF) {
			a.room = limited.N
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(t); err != nil {
			return err
		}
	}
}

// attributeValue returns the value of an element's attribute.
func attributeValue(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// readWord sends the text of a Word document, then its notes and comments.
func readWord(data []byte, w *writer) error {
	a, err := openArchive(data)
	if err != nil {
		return err
	}
	if a.files["word/document.xml"] == nil {
		return faultBroken
	}
	for _, part := range []struct{ label, file string }{
		{"", "word/document.xml"}, {"footnotes", "word/footnotes.xml"}, {"endnotes", "word/endnotes.xml"}, {"comments", "word/comments.xml"},
	} {
		d := paragraphs{}
		err := a.scanXML(part.file, d.visitToken)
		if text := strings.TrimSpace(string(d.out)); text != "" {
			if err := w.writeText(part.label, text); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// paragraphs extracts text from WordprocessingML and DrawingML, whose text elements have the
// same names.
type paragraphs struct {
	out      []byte
	inText   bool // of a run
	hidden   bool // the run is hidden
	fallback int  // depth of fallback content, which repeats the text before it
	cells    int  // in the current table row
}

func (p *paragraphs) visitToken(t xml.Token) error {
	switch t := t.(type) {
	case xml.StartElement:
		switch t.Name.Local {
		case "Fallback":
			p.fallback++
		case "t":
			p.inText = true
		case "r":
			p.hidden = false
		case "vanish":
			p.hidden = attributeValue(t, "val") != "0" && attributeValue(t, "val") != "false"
		case "pStyle":
			if level, ok := strings.CutPrefix(attributeValue(t, "val"), "Heading"); ok && len(level) == 1 && level >= "1" && level <= "6" {
				p.write(strings.Repeat("#", int(level[0]-'0')) + " ")
			}
		case "tab":
			p.write("\t")
		case "br", "cr":
			p.write("\n")
		case "tr":
			p.cells = 0
		case "tc":
			if p.cells++; p.cells > 1 {
				p.out = bytes.TrimRight(p.out, "\n")
				p.write(" | ")
			}
		}
	case xml.EndElement:
		switch t.Name.Local {
		case "Fallback":
			p.fallback = max(p.fallback-1, 0)
		case "t":
			p.inText = false
		case "p", "tr":
			if len(p.out) > 0 && !bytes.HasSuffix(p.out, []byte("\n\n")) {
				p.write("\n")
			}
		}
	case xml.CharData:
		if p.inText && !p.hidden && p.fallback == 0 {
			p.out = append(p.out, t...)
		}
	}
	if len(p.out) > maxText {
		return errFull
	}
	return nil
}

func (p *paragraphs) write(text string) {
	if p.fallback == 0 {
		p.out = append(p.out, text...)
	}
}

// readPowerPoint sends the text of each slide.
func readPowerPoint(data []byte, w *writer) error {
	a, err := openArchive(data)
	if err != nil {
		return err
	}
	targets := map[string]string{}
	err = a.scanXML("ppt/_rels/presentation.xml.rels", func(t xml.Token) error {
		if e, ok := t.(xml.StartElement); ok && e.Name.Local == "Relationship" && strings.HasSuffix(attributeValue(e, "Type"), "/slide") && len(targets) < maxPages {
			targets[attributeValue(e, "Id")] = path.Join("ppt", attributeValue(e, "Target"))
		}
		return nil
	})
	if err != nil {
		return err
	}
	var slides []string
	err = a.scanXML("ppt/presentation.xml", func(t xml.Token) error {
		e, ok := t.(xml.StartElement)
		if !ok || e.Name.Local != "sldId" {
			return nil
		}
		for _, attr := range e.Attr {
			if file := targets[attr.Value]; attr.Name.Space == "r" && a.files[file] != nil && len(slides) < maxPages {
				slides = append(slides, file)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(slides) == 0 {
		return faultBroken
	}
	if err := w.writePageCount(len(slides)); err != nil {
		return err
	}
	for i, file := range slides {
		p := paragraphs{}
		broken := a.scanXML(file, p.visitToken)
		if err := cmp.Or(w.writePage("slide", i+1, string(p.out)), broken); err != nil {
			return err
		}
	}
	return nil
}
