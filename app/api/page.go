package api

import (
	"bytes"
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/api/openapi"
	"bobbin/app/core"
	"bobbin/app/web"
)

// Paths of the web page, of the API document's page, and of the widget that other origins' pages embed. They need no
// key: the files hold no secret.
const (
	pageRoute         = "/"
	assetsRoute       = "/assets/:file"
	docsRoute         = "/docs"
	widgetRoute       = "/widget.html" // the frame
	widgetScriptRoute = "/widget.js"   // what the tag of a page loads
)

// webPolicy lets the web page load files of this server alone, and show images that it made itself. Who
// may frame it follows.
const webPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
	"font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "

// registerPage registers the web page and the widget. Pages of the ancestors may frame a file.
func (s *Server) registerPage(r *gin.Engine) {
	serve := func(route, name, caching, ancestors string) {
		r.GET(route, s.withErrors(func(c *gin.Context) error {
			if route == widgetScriptRoute { // any page may load it: the page that it frames says which of them may show it
				c.Header("Cross-Origin-Resource-Policy", "cross-origin")
			}
			file, ok := web.Lookup(name + c.Param("file"))
			if !ok {
				return core.Errorf(core.ErrNotFound, "the page has no file %s", core.Clip(name+c.Param("file"), 64))
			}
			c.Header("Content-Security-Policy", webPolicy+ancestors)
			c.Header("Vary", "Accept-Encoding")
			body := file.Body
			for _, packed := range []struct {
				coding string
				body   []byte
			}{{"gzip", file.Gzip}, {"br", file.Brotli}} { // the better one last
				if packed.body != nil && handlers.Accepts(c.Request.Header, "Accept-Encoding", packed.coding) {
					c.Header("Content-Encoding", packed.coding)
					body = packed.body
				}
			}
			writeFile(c, file.ETag, caching, file.MediaType, body)
			return nil
		}))
	}
	serve(pageRoute, "index.html", revalidated, "'none'") // it names the current assets
	serve(docsRoute, "docs/index.html", revalidated, "'none'")
	serve(docsRoute+"/:file", "docs/", revalidated, "'none'")
	serve(assetsRoute, "assets/", "public, max-age=31536000, immutable", "'none'")
	serve(widgetRoute, "widget.html", revalidated, cmp.Or(strings.Join(s.Framing, " "), "'none'"))
	serve(widgetScriptRoute, "widget.js", revalidated, "'none'")
}

// serveDocument answers the API document, or 304 if the client has it. It is made when somebody first
// asks for it: that takes longer than the rest of the server's start.
func serveDocument(c *gin.Context) error {
	document := openapi.New()
	writeFile(c, document.ETag, revalidated, "application/json", document.JSON)
	return nil
}

// revalidated is the caching of documents that may be kept but must be checked.
const revalidated = "public, no-cache"

// writeFile answers a file, or 304 if the client has the version with that tag.
func writeFile(c *gin.Context, etag, caching, mediaType string, body []byte) {
	c.Header("ETag", etag)
	c.Header("Cache-Control", caching)
	c.Header("Content-Type", mediaType)
	http.ServeContent(c.Writer, c.Request, "", time.Time{}, bytes.NewReader(body))
}
