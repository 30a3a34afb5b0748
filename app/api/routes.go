package api

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/api/mcp"
	"bobbin/app/api/openapi"
	"bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/app/web"
)

// Routes that middleware and limits refer to.
const (
	messagesRoute = "/api/v1/sessions/:id/messages"
	messageRoute  = messagesRoute + "/:mid"
	importRoute   = messagesRoute + "/import"
	blobsRoute    = "/api/v1/blobs"
	metricsRoute  = "/metrics"
	slackRoute    = "/slack/"
	mcpRoute      = "/mcp"

	operatorPrefix = "/internal/"
)

// registerRoutes registers every native route; app/api/openapi describes them.
func (s *Server) registerRoutes(r *gin.Engine) {
	checks := s.Checks
	if s.Ready != nil {
		checks = append([]handlers.Check{{Name: "runs", Run: func(context.Context) error {
			if s.isAdmitting() {
				return nil
			}
			return core.Errorf(core.ErrUnavailable, "runs of an earlier process have not been taken over yet")
		}}}, checks...)
	}
	health := &handlers.Health{Checks: checks, Build: s.Build, Drain: s.drain}
	probe := []string{http.MethodGet, http.MethodHead}
	r.Match(probe, "/healthz", s.withErrors(health.Live))
	r.Match(probe, "/readyz", s.withErrors(health.Ready))

	if s.Metrics != nil {
		var guards []gin.HandlerFunc
		if !s.OpenMetrics {
			guards = []gin.HandlerFunc{s.withErrors(s.authenticateCaller), s.requireScope(core.CanMetrics)}
		}
		r.Group("", guards...).GET(metricsRoute, s.withoutQuery(func(c *gin.Context) error {
			s.Metrics.ServeHTTP(c.Writer, c.Request)
			return nil
		}))
	}

	for route, answer := range s.Slack {
		method, path, _ := strings.Cut(route, " ")
		r.Handle(method, path, gin.WrapF(answer))
	}
	s.registerPage(r)
	r.GET("/openapi.json", s.withErrors(func(c *gin.Context) error { // the document is made when somebody first asks for it: that takes longer than the rest of the start
		document := openapi.New()
		writeFile(c, document.ETag, revalidated, "application/json", document.JSON)
		return nil
	}))

	known := r.Group("", s.withErrors(s.authenticateCaller), s.withErrors(s.reserveMemory))
	known.GET("/version", s.withoutQuery(health.Version))
	native := handlers.Native{Services: s.Services, Streams: s.streams, Space: s.Space}
	native.Register(s.operationRouter(r, known))
	r.Group("", s.withErrors(native.Follow), s.withErrors(s.reserveMemory)).GET("/api/v1/blobs/:id/content", s.withErrors(native.Content))
	s.registerOpenAI(known)
	server := mcp.New(mcp.Options{Services: s.Services, Streams: s.streams, Version: s.Build.Version, Explain: s.explainError})
	known.POST(mcpRoute, s.withoutQuery(server.Serve)) // its tools check the scopes
}

// operationRouter returns what registers operations behind what their callers must have. Known has the
// routes of requests whose caller is known.
func (s *Server) operationRouter(all *gin.Engine, known *gin.RouterGroup) handlers.Router {
	return func(op ops.Operation, handler func(*gin.Context) error) {
		path := strings.NewReplacer("{", ":", "}", "").Replace(op.Path())
		if strings.HasPrefix(path, operatorPrefix) {
			all.Handle(op.Method(), path, s.withErrors(s.authenticateCaller), s.withErrors(handlers.Operator), s.withErrors(handler))
			return
		}
		chain := []gin.HandlerFunc{s.requireScope(op.Scope)}
		if op.OwnersOnly {
			chain = append(chain, s.withErrors(handlers.OwnersOnly))
		}
		switch op.Scope {
		case core.CanDelete, core.CanExport:
			chain = append(chain, s.withErrors(refuseKey))
		case core.CanRead: // it may be executed again, and stores nothing
		default:
			chain = append(chain, s.withErrors(s.idempotent))
		}
		known.Handle(op.Method(), path, append(chain, s.withErrors(handler))...)
	}
}

// registerOpenAI registers the routes of the OpenAI protocol. They take query parameters that
// they do not know, as they do with fields.
func (s *Server) registerOpenAI(known *gin.RouterGroup) {
	dialect := s.OpenAI
	dialect.Services, dialect.Streams = s.Services, s.streams
	read := known.Group("/v1", s.requireScope(core.CanRead))
	write := known.Group("/v1", s.requireScope(core.CanWrite))
	keyed := write.Group("", s.withErrors(s.idempotent)) // of the others embeddings only read
	keyed.POST("/chat/completions", s.withErrors(dialect.Complete))
	write.POST("/embeddings", s.withErrors(dialect.Embed))
	keyed.POST("/responses", s.withErrors(dialect.Respond))
	read.GET("/responses/:id", s.withErrors(dialect.GetResponse))
	keyed.POST("/responses/:id/cancel", s.withErrors(dialect.CancelResponse))
	keyed.POST("/conversations", s.withErrors(dialect.CreateConversation))
	read.GET("/conversations/:id", s.withErrors(dialect.GetConversation))
	keyed.POST("/conversations/:id", s.withErrors(dialect.UpdateConversation))
	write.DELETE("/conversations/:id", s.withErrors(dialect.DeleteConversation))
	read.GET("/conversations/:id/items", s.withErrors(dialect.ListItems))
	keyed.POST("/conversations/:id/items", s.withErrors(dialect.CreateItems))
	read.GET("/conversations/:id/items/:item", s.withErrors(dialect.GetItem))
	write.DELETE("/conversations/:id/items/:item", s.withErrors(dialect.DeleteItem))
	read.GET("/models", s.withErrors(dialect.ListModels))
	read.GET("/models/*model", s.withErrors(dialect.GetModel))
}

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

// revalidated is the caching of documents that may be kept but must be checked.
const revalidated = "public, no-cache"

// writeFile answers a file, or 304 if the client has the version with that tag.
func writeFile(c *gin.Context, etag, caching, mediaType string, body []byte) {
	c.Header("ETag", etag)
	c.Header("Cache-Control", caching)
	c.Header("Content-Type", mediaType)
	http.ServeContent(c.Writer, c.Request, "", time.Time{}, bytes.NewReader(body))
}
