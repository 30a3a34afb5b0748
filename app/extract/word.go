package extract

import (
	"bytes"
	"encoding/xml"
	"strings"
)

// readWord sends the text of a Word document, then its notes and comments.
func readWord(data []byte, w *writer) error {
	a, err := openArchive(data)
	if err != nil {
		return err
	}
	if a.files["word/document.xml"] == nil {
		return faultError(faultBroken)
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
