package extract

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"

	"bobbin/app/core/attach"
)

// Command is the first argument of the child process; the second is the document's media type.
// It is not meant for people.
const Command = "extract-text"

// Serve is the child process: it reads a document from in and writes its text to out. It sets
// the process's limits and returns the exit code.
func Serve(mediaType string, in io.Reader, out io.Writer) int {
	if err := limitProcess(); err != nil {
		return 1
	}
	const maxStack = 64 << 20
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(maxMemory / 4 * 3)
	data, err := io.ReadAll(in)
	if err != nil {
		return 1
	}
	w := &writer{json.NewEncoder(out), maxText}
	if err := w.writeEnd(readDocument(mediaType, data, w)); err != nil {
		return 1
	}
	return 0
}

// readDocument sends the text of a document.
func readDocument(mediaType string, data []byte, w *writer) (err error) {
	defer func() {
		if p := recover(); p != nil { // the libraries panic on unexpected input
			err = fmt.Errorf("%v", p)
		}
	}()
	switch mediaType {
	case attach.PDF:
		return readPDF(data, w)
	case attach.Word:
		return readWord(data, w)
	case attach.Excel:
		a, err := openArchive(data)
		if err != nil {
			return err
		}
		b := workbook{archive: a, dates: map[int]string{}, out: w}
		sheets, err := b.readStructure()
		if err != nil {
			return err
		}
		if len(sheets) == 0 {
			return faultError(faultBroken)
		}
		for _, s := range sheets {
			if s.hidden {
				err = w.writeText(fmt.Sprintf("sheet %q is hidden and was left out", s.name), "")
			} else {
				err = b.readSheet(s)
			}
			if err != nil {
				return err
			}
		}
		return nil
	case attach.PowerPoint:
		return readPowerPoint(data, w)
	case attach.HTML, xhtml:
		return readHTML(mediaType, data, w)
	default:
		return fmt.Errorf("%s is not a document type", mediaType)
	}
}
