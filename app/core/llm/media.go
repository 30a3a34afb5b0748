package llm

import (
	"strings"

	"bobbin/app/core"
)

// Documents is which PDFs a model gets as files. Of others it gets the text.
type Documents string

// Which PDFs. Empty is DocumentsNever.
const (
	DocumentsNever   Documents = "never"
	DocumentsScanned Documents = "scanned" // those with pages without text
	DocumentsAlways  Documents = "always"
)

// What Anthropic takes of an image: 5 MB in base64, 8,000 pixels on each side.
const (
	anthropicBytes = 5_000_000 / 4 * 3
	anthropicSide  = 8_000
)

// A PDF with more pages or bytes is sent as text. Providers show the model an image of
// each page besides its text: 20 pages cost 32,000 tokens (tokens.PageTokens), which is a
// quarter of a window of 128,000. They take 100 pages and 32 MB in a request, and base64
// makes four bytes of three.
const (
	maxDocumentPages = 20
	maxDocumentBytes = 14 << 20
)

// mediaPDF is the only type of file that the providers take in a message.
const mediaPDF = "application/pdf"

// Takes reports whether the image or the file can be sent unchanged: the model sees
// images or reads PDFs, and its provider accepts this kind and size.
func (i Info) Takes(p core.Part) bool {
	switch {
	case p.Type == core.PartFile:
		// Only a document whose text was read can be sent as text when there is no room for its pages.
		if p.MediaType != mediaPDF || !p.Extracted || p.Pages < 1 || p.Pages > maxDocumentPages || p.Size > maxDocumentBytes {
			return false
		}
		return i.Documents == DocumentsAlways || i.Documents == DocumentsScanned && p.Blank > 0
	case !i.Images || p.Type != core.PartImage:
		return false
	case i.Provider == ProviderAnthropic || i.Provider == ProviderBedrock || i.Provider == ProviderVertex || strings.Contains(i.Name, "claude"):
		return p.Size <= anthropicBytes && p.Width <= anthropicSide && p.Height <= anthropicSide
	case i.Provider == ProviderGemini:
		return p.MediaType != "image/gif"
	default:
		return true
	}
}

// WithoutMedia returns the model as one that gets descriptions of images, and the text of PDFs.
func WithoutMedia(m Model) Model { return &blind{m} }

type blind struct{ Model }

// Info describes the model.
func (m *blind) Info() Info {
	info := m.Model.Info()
	info.Images, info.Documents = false, DocumentsNever
	return info
}
