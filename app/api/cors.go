package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// What pages of other origins may send and read. Keys are headers that a page sets itself,
// not cookies, so credentials are never allowed.
const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	corsHeaders = "Accept, Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, Prefer, Range, X-API-Key, X-Request-ID"
	// openAIHeaders are what clients of the OpenAI protocol send, too.
	openAIHeaders = ", OpenAI-Beta, OpenAI-Organization, OpenAI-Project, X-Conversation-Id, X-OpenWebUI-Chat-Id, X-OpenWebUI-User-Id, X-Session-Id" +
		", X-Stainless-Arch, X-Stainless-Helper-Method, X-Stainless-Lang, X-Stainless-OS, X-Stainless-Package-Version, X-Stainless-Retry-Count, X-Stainless-Runtime, X-Stainless-Runtime-Version, X-Stainless-Timeout"
	// mcpHeaders are what clients of MCP send, too.
	mcpHeaders  = ", Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id"
	corsExposed = "Content-Disposition, ETag, Idempotency-Replayed, Last-Event-ID, Location, Retry-After, WWW-Authenticate, X-Bobbin-History, X-Bobbin-Ignored, X-Request-ID, X-Session-Id, X-Should-Retry"
	corsMaxAge  = "600" // seconds for which a browser caches the preflight response
)

// setCORSHeaders lets pages of the configured origins read responses (CORS, Fetch
// standard). Other pages get no such header, and browsers hide the responses from them.
// A key is required all the same.
func (s *Server) setCORSHeaders(c *gin.Context) {
	path := c.Request.URL.Path
	shared := strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, openAIPrefix) || path == mcpRoute || path == "/version" || path == "/openapi.json"
	if len(s.Origins) == 0 || !shared { // the operator's paths are not
		return
	}
	h := c.Writer.Header()
	h.Add("Vary", "Origin")
	origins := c.Request.Header.Values("Origin")
	if len(origins) != 1 || !slices.Contains(s.Origins, origins[0]) {
		return
	}
	h.Set("Access-Control-Allow-Origin", origins[0])
	if c.Request.Method != http.MethodOptions || c.GetHeader("Access-Control-Request-Method") == "" {
		h.Set("Access-Control-Expose-Headers", corsExposed)
		return
	}
	h.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", corsMethods)
	allowed := corsHeaders
	if strings.HasPrefix(path, openAIPrefix) {
		allowed += openAIHeaders
	}
	if path == mcpRoute {
		allowed += mcpHeaders
	}
	h.Set("Access-Control-Allow-Headers", allowed)
	h.Set("Access-Control-Max-Age", corsMaxAge)
	c.AbortWithStatus(http.StatusNoContent)
}
