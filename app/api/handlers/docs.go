package handlers

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// apiDocument describes the API.
type apiDocument interface {
	JSON() []byte
	// File returns a part of the page for people; the page itself has the name "".
	File(name string) (mediaType string, body []byte, ok bool)
	ETag() string
}

// Docs answers what the API looks like, to everybody.
type Docs struct {
	document apiDocument
}

// NewDocs returns the handlers of the document.
func NewDocs(document apiDocument) *Docs { return &Docs{document: document} }

// OpenAPI answers the document, 304 to who has it already.
func (h *Docs) OpenAPI(c *gin.Context) error {
	if h.known(c) {
		return nil
	}
	Write(c, http.StatusOK, "application/json", h.document.JSON())
	return nil
}

// Page answers the document as a page for people.
func (h *Docs) Page(c *gin.Context) error { return h.file(c, "") }

// File answers what the page is made of.
func (h *Docs) File(c *gin.Context) error { return h.file(c, c.Param("file")) }

// pagePolicy lets the page load what is ours, and nothing else.
const pagePolicy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (h *Docs) file(c *gin.Context, name string) error {
	media, body, ok := h.document.File(name)
	if !ok {
		return core.Errorf(core.ErrNotFound, "the page has no file %s", shorten(name))
	}
	c.Header("Content-Security-Policy", pagePolicy)
	if h.known(c) {
		return nil
	}
	Write(c, http.StatusOK, media, body)
	return nil
}

// known answers 304 if the caller has what would be answered.
func (h *Docs) known(c *gin.Context) bool {
	c.Header("ETag", h.document.ETag())
	c.Header("Cache-Control", "public, no-cache") // ask whether it is still the same
	for given := range strings.SplitSeq(c.GetHeader("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(given), "W/") == h.document.ETag() {
			WriteNothing(c, http.StatusNotModified)
			return true
		}
	}
	return false
}
