package extract

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
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
		return faultError(faultLocked)
	}
	if f.UncompressedSize64 > uint64(a.room) {
		return faultError(faultUnpacked)
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
			return faultError(faultUnpacked)
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
