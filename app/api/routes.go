package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/api/openapi"
	"bobbin/app/core"
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
	checks := opts.Checks
	if opts.Ready != nil {
		checks = append([]handlers.Check{{Name: "runs", Run: s.isReady}}, checks...)
	}
	health := handlers.NewHealth(checks, opts.Build, s.drain)
	probe := []string{http.MethodGet, http.MethodHead}
	r.Match(probe, "/healthz", s.handle(health.Live))
	r.Match(probe, "/readyz", s.handle(health.Ready))

	if opts.Metrics.Exposition != nil {
		metrics := handlers.NewMetrics(opts.Metrics)
		var guards []gin.HandlerFunc
		if !opts.Metrics.Open {
			guards = []gin.HandlerFunc{s.handle(s.authenticate), s.needs(core.CanMetrics)}
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

	known := r.Group("", s.handle(s.authenticate))
	known.GET("/version", s.plain(health.Version))
	// Every route of the API says by its group what the key must allow.
	read := known.Group("/api/v1", s.needs(core.CanRead), s.handle(s.once))
	write := known.Group("/api/v1", s.needs(core.CanWrite), s.handle(s.once))
	s.conversations(read, write, opts.Services)
	s.everythingElse(read, write, opts.Services)
}

// conversations is the routes of sessions and of what is in them.
func (s *Server) conversations(read, write *gin.RouterGroup, services handlers.Services) {
	streams := s.streams
	files := handlers.NewFiles(services)
	sessions := handlers.NewSessions(services)
	messages := handlers.NewMessages(services, files, streams)
	runs := handlers.NewRuns(services, streams)
	context := handlers.NewContext(services, streams)
	summaries := handlers.NewSummaries(services)
	transfer := handlers.NewTransfer(services)
	deliveries := handlers.NewDeliveries(services)
	owners := s.handle(handlers.OwnersOnly)

	write.POST("/sessions", s.plain(sessions.Create))
	read.GET("/sessions", s.handle(sessions.List))
	read.GET("/sessions/:id", s.plain(sessions.Get))
	write.PATCH("/sessions/:id", s.plain(sessions.Update))
	write.DELETE("/sessions/:id", s.plain(sessions.Archive))
	write.POST("/sessions/:id/fork", s.plain(sessions.Fork))
	read.GET("/sessions/:id/events", s.handle(runs.SessionEvents))
	read.GET("/sessions/:id/export", s.handle(transfer.Export))

	write.POST("/sessions/:id/messages", s.plain(messages.Send))
	read.GET("/sessions/:id/messages", s.handle(messages.List))
	write.POST("/sessions/:id/messages/import", s.handle(transfer.Import))
	write.PATCH("/sessions/:id/messages/:mid", s.plain(messages.Edit))
	write.DELETE("/sessions/:id/messages/:mid", s.plain(messages.Delete))
	write.POST("/sessions/:id/messages/:mid/regenerate", s.plain(messages.Regenerate))
	write.POST("/sessions/:id/messages/:mid/select", s.plain(messages.Select))
	write.PUT("/sessions/:id/messages/:mid/pin", s.plain(messages.Pin))

	read.GET("/sessions/:id/context", s.plain(context.Report))
	read.GET("/sessions/:id/context/prompt", owners, s.plain(context.Prompt))
	read.GET("/sessions/:id/context/messages/:mid", s.plain(context.Where))
	read.POST("/sessions/:id/context/plan", s.plain(context.Plan))
	write.POST("/sessions/:id/summarize", s.plain(context.Summarize))
	read.GET("/sessions/:id/summaries", s.handle(summaries.List))
	read.GET("/sessions/:id/summaries/:version", s.plain(summaries.Get))
	read.GET("/sessions/:id/summaries/:version/diff", s.handle(summaries.Diff))
	write.POST("/sessions/:id/summaries/:version/restore", s.plain(summaries.Restore))
	write.PUT("/sessions/:id/summary", s.plain(summaries.Edit))

	read.GET("/sessions/:id/runs", s.handle(runs.List))
	read.GET("/runs/:id", s.plain(runs.Get))
	read.GET("/runs/:id/events", s.handle(runs.Events))
	write.POST("/runs/:id/cancel", s.plain(runs.Cancel))
	write.POST("/runs/:id/approvals/:approval", s.plain(runs.Decide))
	read.GET("/runs/:id/deliveries", owners, s.plain(deliveries.List))
	write.POST("/runs/:id/deliveries/:did/retry", owners, s.plain(deliveries.Retry))

	write.POST("/blobs", s.plain(files.Upload))
	read.GET("/blobs/:id", s.plain(files.Get))
}

// everythingElse is the routes of what is beside the sessions.
func (s *Server) everythingElse(read, write *gin.RouterGroup, services handlers.Services) {
	search := handlers.NewSearch(services)
	memories := handlers.NewMemories(services)
	usage := handlers.NewUsage(services)
	agents := handlers.NewAgents(services)

	read.GET("/search", s.handle(search.Messages))

	write.POST("/memories", s.plain(memories.Create))
	read.GET("/memories", s.handle(memories.List))
	read.POST("/memories/search", s.plain(memories.Search))
	write.POST("/memories/reindex", s.handle(handlers.OwnersOnly), s.plain(memories.Reindex))
	read.GET("/memories/:id", s.handle(memories.Get))
	write.PUT("/memories/:id", s.handle(memories.Update))
	write.DELETE("/memories/:id", s.handle(memories.Delete))

	read.GET("/usage", s.handle(usage.Get))

	read.GET("/agents", s.plain(agents.List))
	read.GET("/agents/:name", s.plain(agents.Get))
	read.GET("/agents/:name/graph", s.handle(agents.Graph))
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
