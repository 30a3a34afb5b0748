package extract

import (
	"encoding/xml"
	"fmt"
	"path"
	"strings"
)

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
		return faultError(faultBroken)
	}
	if err := w.writePageCount(len(slides)); err != nil {
		return err
	}
	for i, file := range slides {
		p := paragraphs{}
		broken := a.scanXML(file, p.visitToken)
		text := strings.TrimSpace(string(p.out))
		if text == "" {
			err = w.writeBlank(i + 1)
		} else {
			err = w.writeText(fmt.Sprintf("slide %d", i+1), text)
		}
		if err == nil {
			err = broken
		}
		if err != nil {
			return err
		}
	}
	return nil
}
