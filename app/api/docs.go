package api

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/api/openapi"
	"bobbin/app/core"
)

// serveDocument answers the API document, or 304 if the client has it. It is made when somebody first
// asks for it or for its page: that takes longer than the rest of the server's start.
func serveDocument(c *gin.Context) error {
	if document := openapi.New(); !writeNotModified(c, document.ETag, revalidated) {
		handlers.Write(c, http.StatusOK, "application/json", document.JSON)
	}
	return nil
}

// docsPolicy lets the page load only files of this server.
const docsPolicy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// serveDocs answers the document as a web page, or the file of the page that the path names.
func serveDocs(c *gin.Context) error {
	name := c.Param("file")
	document := openapi.New()
	file, ok := document.Files[name]
	if !ok {
		return core.Errorf(core.ErrNotFound, "the page has no file %s", core.Clip(name, 64))
	}
	c.Header("Content-Security-Policy", docsPolicy)
	if writeNotModified(c, document.ETag, revalidated) {
		return nil
	}
	handlers.Write(c, http.StatusOK, file.MediaType, file.Body)
	return nil
}

// revalidated is the caching of documents that may be kept but must be checked.
const revalidated = "public, no-cache"

// writeNotModified answers 304 and returns true if the client has the version with that tag.
func writeNotModified(c *gin.Context, etag, caching string) bool {
	c.Header("ETag", etag)
	c.Header("Cache-Control", caching)
	for given := range strings.SplitSeq(c.GetHeader("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(given), "W/") == etag {
			handlers.WriteNothing(c, http.StatusNotModified)
			return true
		}
	}
	return false
}
