package extract

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/ledongthuc/pdf"
)

// readPDF sends the text of each page.
func readPDF(data []byte, w *writer) error {
	r, err := pdf.NewReader(bytes.NewReader(data), int64(len(data)))
	switch {
	case errors.Is(err, pdf.ErrInvalidPassword):
		return faultError(faultLocked)
	case err != nil:
		return err
	}
	root := r.Trailer().Key("Root").Key("Pages")
	pages := pageTree{}
	if pages.addNode(root, 0); len(pages.leaves) == 0 {
		return faultError(faultBroken)
	}
	if err := w.writePageCount(len(pages.leaves)); err != nil {
		return err
	}
	fonts := fontCache{}
	for i, page := range pages.leaves {
		text := strings.TrimSpace(pageText(page, fonts))
		if text == "" {
			err = w.writeBlank(i + 1)
		} else {
			err = w.writeText(fmt.Sprintf("page %d", i+1), text)
		}
		if err != nil {
			return err
		}
	}
	if pages.full {
		return errFull
	}
	return nil
}

// pageTree collects the pages of a document in order. Depth and nodes are limited, as a hostile
// document may have cycles.
type pageTree struct {
	leaves []pdf.Value
	nodes  int
	full   bool // the document has more pages
}

func (t *pageTree) addNode(node pdf.Value, depth int) {
	t.nodes++
	if depth > maxDepth {
		t.full = true
		return
	}
	kids := node.Key("Kids")
	if kids.Kind() != pdf.Array {
		if node.Kind() == pdf.Dict {
			t.leaves = append(t.leaves, node)
		}
		return
	}
	for i := range kids.Len() {
		if len(t.leaves) >= maxPages || t.nodes > 2*maxPages {
			t.full = true
			return
		}
		t.addNode(kids.Index(i), depth+1)
	}
}

// pageText returns the text of a page up to the first part that the library cannot parse.
func pageText(page pdf.Value, fonts fontCache) (text string) {
	p := painter{fonts: fonts, ctm: identityMatrix(), hscale: 1}
	defer func() {
		if recover() != nil {
			text = p.out.String()
		}
	}()
	p.runStream(page.Key("Contents"), inheritedEntry(page, "Resources"), 0)
	return p.out.String()
}

// inheritedEntry returns an entry of a page, or of its nearest ancestor that has it.
func inheritedEntry(page pdf.Value, key string) pdf.Value {
	for range maxDepth {
		if v := page.Key(key); !v.IsNull() || page.IsNull() {
			return v
		}
		page = page.Key("Parent")
	}
	return pdf.Value{}
}
