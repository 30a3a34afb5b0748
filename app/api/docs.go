package api

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/api/openapi"
	"bobbin/app/core"
)

// docs serves the API document and its page, without authentication. They are made when
// somebody first asks for them: that takes longer than the rest of the server's start.
type docs struct{}

// serveDocument answers the document, or 304 if the client has it.
func (h docs) serveDocument(c *gin.Context) error {
	document, err := openapi.New()
	if err != nil || h.writeNotModified(c, document) {
		return err
	}
	handlers.Write(c, http.StatusOK, "application/json", document.JSON())
	return nil
}

// servePage answers the document as a web page.
func (h docs) servePage(c *gin.Context) error { return h.serveFile(c, "") }

// serveParam answers the file of the page that the path names.
func (h docs) serveParam(c *gin.Context) error { return h.serveFile(c, c.Param("file")) }

// pagePolicy lets the page load only files of this server.
const pagePolicy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (h docs) serveFile(c *gin.Context, name string) error {
	document, err := openapi.New()
	if err != nil {
		return err
	}
	media, body, ok := document.File(name)
	if !ok {
		return core.Errorf(core.ErrNotFound, "the page has no file %s", core.Clip(name, 64))
	}
	c.Header("Content-Security-Policy", pagePolicy)
	if h.writeNotModified(c, document) {
		return nil
	}
	handlers.Write(c, http.StatusOK, media, body)
	return nil
}

// writeNotModified answers 304 and returns true if the client has the current version.
func (docs) writeNotModified(c *gin.Context, document *openapi.Document) bool {
	c.Header("ETag", document.ETag())
	c.Header("Cache-Control", "public, no-cache") // caches must revalidate
	for given := range strings.SplitSeq(c.GetHeader("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(given), "W/") == document.ETag() {
			handlers.WriteNothing(c, http.StatusNotModified)
			return true
		}
	}
	return false
}
