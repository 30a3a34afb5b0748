package api

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/app/web"
)

// Paths of the web page. They need no key: the files hold no secret.
const (
	pageRoute   = "/"
	assetsRoute = "/assets/:file"
)

// webPolicy lets the web page load files of this server alone, and show images that it made itself.
const webPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
	"font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// servePage answers the web page itself, which caches must revalidate: it names the current assets.
func servePage(c *gin.Context) error { return serveWebFile(c, "index.html", revalidated) }

// serveAsset answers a file whose name changes with its content.
func serveAsset(c *gin.Context) error {
	return serveWebFile(c, "assets/"+c.Param("file"), "public, max-age=31536000, immutable")
}

func serveWebFile(c *gin.Context, name, caching string) error {
	file, ok := web.Lookup(name)
	if !ok {
		return core.Errorf(core.ErrNotFound, "the page has no file %s", core.Clip(name, 64))
	}
	c.Header("Content-Security-Policy", webPolicy)
	c.Header("Vary", "Accept-Encoding")
	if writeNotModified(c, file.ETag, caching) {
		return nil
	}
	body := file.Body
	if file.Gzip != nil && strings.Contains(c.GetHeader("Accept-Encoding"), "gzip") {
		c.Header("Content-Encoding", "gzip")
		body = file.Gzip
	}
	handlers.Write(c, http.StatusOK, file.MediaType, body)
	return nil
}
