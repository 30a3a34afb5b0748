package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/api/openapi"
)

// Routes that other parts of the server know by their name.
const (
	messagesRoute = "/api/v1/sessions/:id/messages"
	messageRoute  = messagesRoute + "/:mid"
	importRoute   = messagesRoute + "/import"
	blobsRoute    = "/api/v1/blobs"
	metricsRoute  = "/metrics"
)

// routes is every native route (API.md); app/api/openapi describes them.
func (s *Server) routes(r *gin.Engine, opts Options) {
	health := handlers.NewHealth(opts.Checks, opts.Build, s.drain)
	probe := []string{http.MethodGet, http.MethodHead}
	r.Match(probe, "/healthz", s.handle(health.Live))
	r.Match(probe, "/readyz", s.handle(health.Ready))

	if opts.Metrics.Exposition != nil {
		metrics := handlers.NewMetrics(opts.Metrics)
		var guards []gin.HandlerFunc
		if !opts.Metrics.Open {
			guards = []gin.HandlerFunc{s.handle(s.authenticate), s.handle(metrics.Allowed)}
		}
		r.Group("", guards...).GET(metricsRoute, s.plain(metrics.Get))
	}

	document := handlers.NewDocs(mustDocument())
	r.GET("/openapi.json", s.handle(document.OpenAPI))
	r.GET("/docs", s.handle(document.Page))
	r.GET("/docs/:file", s.handle(document.File))

	if opts.Purge != nil {
		purge := handlers.NewPurge(opts.Purge)
		operator := r.Group("/internal/v1", s.handle(s.authenticate), s.handle(handlers.Operator))
		operator.POST("/purge/sessions", s.handle(purge.Sessions))
		operator.POST("/purge/users", s.handle(purge.User))
	}

	known := r.Group("", s.handle(s.authenticate), s.handle(s.once))
	known.GET("/version", s.plain(health.Version))
	v1 := known.Group("/api/v1")
	s.conversations(v1, opts.Services)
	s.everythingElse(v1, opts.Services)
}

// conversations is the routes of sessions and of what is in them.
func (s *Server) conversations(v1 *gin.RouterGroup, services handlers.Services) {
	streams := handlers.NewStreams(s.held(), s.drain)
	files := handlers.NewFiles(services)
	sessions := handlers.NewSessions(services)
	messages := handlers.NewMessages(services, files, streams)
	runs := handlers.NewRuns(services, streams)
	context := handlers.NewContext(services, streams)
	summaries := handlers.NewSummaries(services)
	transfer := handlers.NewTransfer(services)

	v1.POST("/sessions", s.plain(sessions.Create))
	v1.GET("/sessions", s.handle(sessions.List))
	v1.GET("/sessions/:id", s.plain(sessions.Get))
	v1.PATCH("/sessions/:id", s.plain(sessions.Update))
	v1.DELETE("/sessions/:id", s.plain(sessions.Archive))
	v1.POST("/sessions/:id/fork", s.plain(sessions.Fork))
	v1.GET("/sessions/:id/events", s.handle(runs.SessionEvents))
	v1.GET("/sessions/:id/export", s.handle(transfer.Export))

	v1.POST("/sessions/:id/messages", s.plain(messages.Send))
	v1.GET("/sessions/:id/messages", s.handle(messages.List))
	v1.POST("/sessions/:id/messages/import", s.handle(transfer.Import))
	v1.PATCH("/sessions/:id/messages/:mid", s.plain(messages.Edit))
	v1.DELETE("/sessions/:id/messages/:mid", s.plain(messages.Delete))
	v1.POST("/sessions/:id/messages/:mid/regenerate", s.plain(messages.Regenerate))
	v1.POST("/sessions/:id/messages/:mid/select", s.plain(messages.Select))
	v1.PUT("/sessions/:id/messages/:mid/pin", s.plain(messages.Pin))

	v1.GET("/sessions/:id/context", s.plain(context.Report))
	v1.GET("/sessions/:id/context/prompt", s.plain(context.Prompt))
	v1.GET("/sessions/:id/context/messages/:mid", s.plain(context.Where))
	v1.POST("/sessions/:id/context/plan", s.plain(context.Plan))
	v1.POST("/sessions/:id/summarize", s.plain(context.Summarize))
	v1.GET("/sessions/:id/summaries", s.handle(summaries.List))
	v1.GET("/sessions/:id/summaries/:version", s.plain(summaries.Get))
	v1.GET("/sessions/:id/summaries/:version/diff", s.handle(summaries.Diff))
	v1.POST("/sessions/:id/summaries/:version/restore", s.plain(summaries.Restore))
	v1.PUT("/sessions/:id/summary", s.plain(summaries.Edit))

	v1.GET("/sessions/:id/runs", s.handle(runs.List))
	v1.GET("/runs/:id", s.plain(runs.Get))
	v1.GET("/runs/:id/events", s.handle(runs.Events))
	v1.POST("/runs/:id/cancel", s.plain(runs.Cancel))

	v1.POST("/blobs", s.plain(files.Upload))
	v1.GET("/blobs/:id", s.plain(files.Get))
}

// everythingElse is the routes of what is beside the sessions.
func (s *Server) everythingElse(v1 *gin.RouterGroup, services handlers.Services) {
	search := handlers.NewSearch(services)
	memories := handlers.NewMemories(services)
	usage := handlers.NewUsage(services)
	agents := handlers.NewAgents(services)

	v1.GET("/search", s.handle(search.Messages))

	v1.POST("/memories", s.plain(memories.Create))
	v1.GET("/memories", s.handle(memories.List))
	v1.POST("/memories/search", s.plain(memories.Search))
	v1.POST("/memories/reindex", s.plain(memories.Reindex))
	v1.GET("/memories/:id", s.handle(memories.Get))
	v1.PUT("/memories/:id", s.handle(memories.Update))
	v1.DELETE("/memories/:id", s.handle(memories.Delete))

	v1.GET("/usage", s.handle(usage.Get))

	v1.GET("/agents", s.plain(agents.List))
	v1.GET("/agents/:name", s.plain(agents.Get))
	v1.GET("/agents/:name/graph", s.handle(agents.Graph))
}

// mustDocument returns the document of the API. It is part of the program: a fault in
// it is one of who wrote it.
func mustDocument() *openapi.Document {
	document, err := openapi.New()
	if err != nil {
		panic("api: " + err.Error())
	}
	return document
}
