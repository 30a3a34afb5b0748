package extract

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"bobbin/app/core"
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
			return faultBroken
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

// Limits of what is read of a document.
const (
	maxText     = 1 << 20  // bytes of text; the rest is dropped
	maxPages    = 10_000   // pages, slides or sheets
	maxUnpacked = 64 << 20 // bytes of an office document after decompression
	maxDepth    = 64       // of the page tree, and of nested forms
)

// frame is a line of the child's output.
type frame struct {
	Pages  int    `json:"pages,omitempty"` // the number of pages; the first frame
	Label  string `json:"label,omitempty"` // of the text, such as page 7
	Text   string `json:"text,omitempty"`
	Blank  int    `json:"blank,omitempty"`  // the number of a page without text
	Cut    bool   `json:"cut,omitempty"`    // the document has more text
	Hidden bool   `json:"hidden,omitempty"` // text was left out that a web page hides
	Fault  fault  `json:"fault,omitempty"`  // why the document cannot be read; last frame
	Done   bool   `json:"done,omitempty"`   // the last frame
}

// fault says why a document cannot be read.
type fault string

const (
	faultBroken   fault = "broken"
	faultLocked   fault = "locked" // it requires a password
	faultUnpacked fault = "unpacked"
)

func (f fault) Error() string { return "the document is " + string(f) }

// errFull ends the reading of a document when there is enough text.
var errFull = errors.New("enough text was read")

// writer sends the text of a document.
type writer struct {
	out  *json.Encoder
	room int // remaining bytes of text
}

// writePageCount sends the number of pages.
func (w *writer) writePageCount(n int) error { return w.out.Encode(frame{Pages: n}) }

// writePage sends the text of a page or a slide, or reports that it has none.
func (w *writer) writePage(kind string, number int, text string) error {
	if text = strings.TrimSpace(text); text == "" {
		return w.out.Encode(frame{Blank: number})
	}
	return w.writeText(fmt.Sprintf("%s %d", kind, number), text)
}

// writeText sends text under a label, either of which may be empty. It returns errFull when
// there is enough.
func (w *writer) writeText(label, text string) error {
	f := frame{Label: label, Text: text}
	if f.Cut = len(text) > w.room; f.Cut {
		f.Text = core.Clip(text, w.room)
	}
	w.room -= len(f.Text) + len(label)
	if err := w.out.Encode(f); err != nil {
		return err
	}
	if f.Cut || w.room <= 0 {
		return errFull
	}
	return nil
}

// writeEnd sends the last frame with the result.
func (w *writer) writeEnd(why error) error {
	bad := faultBroken
	switch {
	case why == nil:
		return w.out.Encode(frame{Done: true})
	case errors.Is(why, errFull):
		return w.out.Encode(frame{Cut: true, Done: true})
	}
	errors.As(why, &bad)
	return w.out.Encode(frame{Fault: bad})
}
