package extract

import (
	"encoding/json"
	"errors"

	"bobbin/app/core"
)

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

// errFull ends the reading of a document when there is enough text.
var errFull = errors.New("enough text was read")

// writer sends the text of a document.
type writer struct {
	out  *json.Encoder
	room int // remaining bytes of text
}

// writePageCount sends the number of pages.
func (w *writer) writePageCount(n int) error { return w.out.Encode(frame{Pages: n}) }

// writeBlank reports a page without text.
func (w *writer) writeBlank(page int) error { return w.out.Encode(frame{Blank: page}) }

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
	var bad faultError
	switch {
	case errors.Is(why, errFull):
		return w.out.Encode(frame{Cut: true, Done: true})
	case errors.As(why, &bad):
		return w.out.Encode(frame{Fault: fault(bad)})
	case why != nil:
		return w.out.Encode(frame{Fault: faultBroken})
	default:
		return w.out.Encode(frame{Done: true})
	}
}

// faultError is a fault as an error.
type faultError fault

func (f faultError) Error() string { return "the document is " + string(f) }
