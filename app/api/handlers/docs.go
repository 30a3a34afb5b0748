package handlers

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// apiDocument describes the API.
type apiDocument interface {
	JSON() []byte
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
