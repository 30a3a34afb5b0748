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
	if err != nil || writeNotModified(c, document.ETag(), revalidated) {
		return err
	}
	handlers.Write(c, http.StatusOK, "application/json", document.JSON())
	return nil
}

// servePage answers the document as a web page.
func (h docs) servePage(c *gin.Context) error { return h.serveFile(c, "") }

// serveParam answers the file of the page that the path names.
func (h docs) serveParam(c *gin.Context) error { return h.serveFile(c, c.Param("file")) }

// docsPolicy lets the page load only files of this server.
const docsPolicy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (h docs) serveFile(c *gin.Context, name string) error {
	document, err := openapi.New()
	if err != nil {
		return err
	}
	media, body, ok := document.File(name)
	if !ok {
		return core.Errorf(core.ErrNotFound, "the page has no file %s", core.Clip(name, 64))
	}
	c.Header("Content-Security-Policy", docsPolicy)
	if writeNotModified(c, document.ETag(), revalidated) {
		return nil
	}
	handlers.Write(c, http.StatusOK, media, body)
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
