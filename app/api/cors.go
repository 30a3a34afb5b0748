package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// What pages of other origins may send and read. Nothing of it is a cookie: keys are
// headers that a page sets itself, so that credentials are never allowed.
const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsHeaders = "Accept, Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, Prefer, Range, X-API-Key, X-Request-ID"
	corsExposed = "Content-Disposition, ETag, Idempotency-Replayed, Last-Event-ID, Location, Retry-After, WWW-Authenticate, X-Request-ID"
	corsMaxAge  = "600" // seconds for which a browser need not ask again
)

// cors lets pages of the configured origins read the answers of the API (CORS, of the
// Fetch standard). Others get no such header, and their browsers keep the answers from
// them. It opens nothing by itself: a key is needed all the same.
func (s *Server) cors(c *gin.Context) {
	if len(s.origins) == 0 || !shared(c.Request.URL.Path) {
		return
	}
	h := c.Writer.Header()
	h.Add("Vary", "Origin")
	origins := c.Request.Header.Values("Origin")
	if len(origins) != 1 || !slices.Contains(s.origins, origins[0]) {
		return
	}
	h.Set("Access-Control-Allow-Origin", origins[0])
	if c.Request.Method != http.MethodOptions || c.GetHeader("Access-Control-Request-Method") == "" {
		h.Set("Access-Control-Expose-Headers", corsExposed)
		return
	}
	h.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Allow-Headers", corsHeaders)
	h.Set("Access-Control-Max-Age", corsMaxAge)
	c.AbortWithStatus(http.StatusNoContent)
}

// shared reports whether pages of other origins may be let in to the path: not to what
// is for operators.
func shared(path string) bool {
	return strings.HasPrefix(path, "/api/") || path == "/version" || path == "/openapi.json"
}
