package api

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/api/mcp"
	"bobbin/app/api/openai"
	"bobbin/app/api/ops"
	"bobbin/app/core"
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
)

// registerRoutes registers every native route; app/api/openapi describes them.
func (s *Server) registerRoutes(r *gin.Engine, opts Options) {
	checks := opts.Checks
	if opts.Ready != nil {
		checks = append([]handlers.Check{{Name: "runs", Run: s.isReady}}, checks...)
	}
	health := handlers.NewHealth(checks, opts.Build, s.drain)
	probe := []string{http.MethodGet, http.MethodHead}
	r.Match(probe, "/healthz", s.withErrors(health.Live))
	r.Match(probe, "/readyz", s.withErrors(health.Ready))

	if opts.Metrics.Expose != nil {
		metrics := handlers.NewMetrics(opts.Metrics)
		var guards []gin.HandlerFunc
		if !opts.Metrics.Open {
			guards = []gin.HandlerFunc{s.withErrors(s.authenticateCaller), s.requireScope(core.CanMetrics)}
		}
		r.Group("", guards...).GET(metricsRoute, s.withoutQuery(metrics.Get))
	}

	if opts.Slack != nil { // it authenticates Slack itself, by a signature of the body
		for _, path := range []string{"events", "interactions", "commands"} {
			r.POST(slackRoute+path, gin.WrapH(opts.Slack))
		}
	}
	if opts.InstallSlack != nil {
		for _, path := range []string{"install", "oauth/callback"} {
			r.GET(slackRoute+path, gin.WrapH(opts.InstallSlack))
		}
	}

	r.GET(pageRoute, s.withErrors(servePage))
	r.GET(assetsRoute, s.withErrors(serveAsset))
	document := docs{}
	r.GET("/openapi.json", s.withErrors(document.serveDocument))
	r.GET("/docs", s.withErrors(document.servePage))
	r.GET("/docs/:file", s.withErrors(document.serveParam))

	operator := r.Group("/internal/v1", s.withErrors(s.authenticateCaller), s.withErrors(handlers.Operator))
	if opts.Purge != nil {
		operator.POST("/purge/sessions", s.withErrors(opts.Purge.Sessions))
		operator.POST("/purge/users", s.withErrors(opts.Purge.User))
		operator.GET("/export", s.withErrors(handlers.NewDataRights(opts.Services).ExportAny))
	}
	if opts.ReloadAgents != nil {
		operator.POST("/agents/reload", s.withErrors(handlers.NewAgentReload(opts.ReloadAgents).Reload))
	}

	known := r.Group("", s.withErrors(s.authenticateCaller), s.withErrors(s.reserveMemory))
	known.GET("/version", s.withoutQuery(health.Version))
	ids := s.withErrors(handlers.CheckIDs)
	// The group of a route says which scope the key needs.
	read := known.Group("/api/v1", s.requireScope(core.CanRead), ids, s.withErrors(s.idempotent))
	write := known.Group("/api/v1", s.requireScope(core.CanWrite), ids, s.withErrors(s.idempotent))
	handlers.Sessions{Services: opts.Services}.Register(operations{s, known})
	s.registerConversations(read, write, opts.Services)
	s.registerResources(read, write, opts.Services)
	files := handlers.NewFiles(opts.Services, s.space)
	r.Group("", ids, s.withErrors(files.Follow), s.withErrors(s.reserveMemory)).GET("/api/v1/blobs/:id/content", s.withErrors(files.Content))
	s.registerDataRights(known, opts.Services)
	s.registerSlack(read, write, opts.Services)
	s.registerOpenAI(known, opts)
	server := mcp.New(mcp.Options{Services: opts.Services, Streams: s.streams, Version: opts.Build.Version, Explain: s.explainError})
	known.POST(mcpRoute, s.withoutQuery(server.Serve)) // its tools check the scopes
}

// operations registers operations behind what their callers must have.
type operations struct {
	*Server
	known *gin.RouterGroup // of requests whose caller is known
}

// Handle is part of handlers.Router. Data rights take no Idempotency-Key: a stored answer would be a
// trace of the deleted data, and a repeated deletion is the same deletion.
func (o operations) Handle(op ops.Operation, handler func(*gin.Context) error) {
	chain := []gin.HandlerFunc{o.requireScope(op.Scope)}
	if op.OwnersOnly {
		chain = append(chain, o.withErrors(handlers.OwnersOnly))
	}
	if op.Scope != core.CanDelete && op.Scope != core.CanExport {
		chain = append(chain, o.withErrors(o.idempotent))
	}
	path := strings.NewReplacer("{", ":", "}", "").Replace(op.Path())
	o.known.Handle(op.Method(), path, append(chain, o.withErrors(handler))...)
}

// registerOpenAI registers the routes of the OpenAI protocol. They take query parameters that
// they do not know, as they do with fields.
func (s *Server) registerOpenAI(known *gin.RouterGroup, opts Options) {
	o := opts.OpenAI
	o.Services, o.Streams = opts.Services, s.streams
	dialect := openai.New(o)
	read := known.Group("/v1", s.requireScope(core.CanRead))
	write := known.Group("/v1", s.requireScope(core.CanWrite))
	keyed := write.Group("", s.withErrors(s.idempotent)) // the others answer by the run that the key began
	write.POST("/chat/completions", s.withErrors(dialect.Complete))
	write.POST("/embeddings", s.withErrors(dialect.Embed))
	write.POST("/responses", s.withErrors(dialect.Respond))
	read.GET("/responses/:id", s.withErrors(dialect.GetResponse))
	write.POST("/responses/:id/cancel", s.withErrors(dialect.CancelResponse))
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

// registerSlack registers the routes of the threads of Slack that show sessions.
func (s *Server) registerSlack(read, write *gin.RouterGroup, services handlers.Services) {
	owners, slack := s.withErrors(handlers.OwnersOnly), handlers.NewSlack(services)
	read.GET("/sessions/:id/slack", owners, s.withoutQuery(slack.Get))
	write.PUT("/sessions/:id/slack", owners, s.withoutQuery(slack.Put))
	write.DELETE("/sessions/:id/slack", owners, s.withoutQuery(slack.Delete))
}

// registerConversations registers the routes of sessions, messages, runs and files.
func (s *Server) registerConversations(read, write *gin.RouterGroup, services handlers.Services) {
	streams := s.streams
	files := handlers.NewFiles(services, s.space)
	messages := handlers.NewMessages(services, files, streams)
	runs := handlers.NewRuns(services, streams)
	transfer := handlers.NewTransfer(services, s.space)
	deliveries := handlers.NewDeliveries(services)
	owners := s.withErrors(handlers.OwnersOnly)

	read.GET("/events", s.withoutQuery(runs.Heads))
	read.GET("/sessions/:id/events", s.withErrors(runs.SessionEvents))
	read.GET("/sessions/:id/export", s.withErrors(transfer.Export))

	write.POST("/sessions/:id/messages", s.withoutQuery(messages.Send))
	read.GET("/sessions/:id/messages", s.withErrors(messages.List))
	write.POST("/sessions/:id/messages/import", s.withErrors(transfer.Import))
	read.GET("/sessions/:id/messages/:mid", s.withoutQuery(messages.Get))
	write.PATCH("/sessions/:id/messages/:mid", s.withoutQuery(messages.Edit))
	write.DELETE("/sessions/:id/messages/:mid", s.withoutQuery(messages.Delete))
	write.POST("/sessions/:id/messages/:mid/regenerate", s.withoutQuery(messages.Regenerate))
	write.POST("/sessions/:id/messages/:mid/select", s.withoutQuery(messages.Select))
	write.PUT("/sessions/:id/messages/:mid/pin", s.withoutQuery(messages.Pin))
	write.DELETE("/sessions/:id/messages/:mid/pin", s.withoutQuery(messages.Unpin))
	write.PUT("/sessions/:id/messages/:mid/metadata", s.withoutQuery(messages.PutMetadata))
	write.PUT("/sessions/:id/messages/:mid/feedback", s.withoutQuery(messages.PutFeedback))
	write.DELETE("/sessions/:id/messages/:mid/feedback", s.withoutQuery(messages.DeleteFeedback))

	s.registerContext(read, write, services)

	read.GET("/sessions/:id/runs", s.withErrors(runs.List))
	read.GET("/runs/:id", s.withoutQuery(runs.Get))
	read.GET("/runs/:id/events", s.withErrors(runs.Events))
	write.POST("/runs/:id/cancel", s.withoutQuery(runs.Cancel))
	write.POST("/runs/:id/approvals/:approval", s.withoutQuery(runs.Decide))
	read.GET("/runs/:id/deliveries", owners, s.withoutQuery(deliveries.List))
	write.POST("/runs/:id/deliveries/:did/retry", owners, s.withoutQuery(deliveries.Retry))

	write.POST("/blobs", s.withoutQuery(files.Upload))
	read.GET("/blobs", s.withErrors(files.List))
	read.GET("/blobs/:id", s.withoutQuery(files.Get))
	read.GET("/blobs/:id/info", s.withoutQuery(files.Describe))
	read.POST("/blobs/:id/link", s.withoutQuery(files.Link))
	write.DELETE("/blobs/:id", s.withoutQuery(files.Delete))
}

// registerContext registers the routes of what prompts are made of.
func (s *Server) registerContext(read, write *gin.RouterGroup, services handlers.Services) {
	context := handlers.NewContext(services, s.streams)
	summaries := handlers.NewSummaries(services)
	instructions := handlers.NewStandingInstructions(services)
	owners := s.withErrors(handlers.OwnersOnly)

	read.GET("/sessions/:id/context", s.withoutQuery(context.Report))
	read.GET("/sessions/:id/context/turns", s.withoutQuery(context.Turns))
	read.GET("/sessions/:id/context/prompt", owners, s.withoutQuery(context.Prompt))
	read.GET("/sessions/:id/context/messages/:mid", s.withoutQuery(context.Where))
	read.POST("/sessions/:id/context/plan", s.withoutQuery(context.Plan))
	write.POST("/sessions/:id/summarize", s.withoutQuery(context.Summarize))
	read.GET("/sessions/:id/summaries", s.withErrors(summaries.List))
	read.GET("/sessions/:id/summaries/:version", s.withoutQuery(summaries.Get))
	read.GET("/sessions/:id/summaries/:version/diff", s.withErrors(summaries.Diff))
	write.POST("/sessions/:id/summaries/:version/restore", s.withoutQuery(summaries.Restore))
	write.PUT("/sessions/:id/summary", s.withoutQuery(summaries.Edit))
	read.GET("/sessions/:id/standing-instructions", s.withErrors(instructions.List))
	write.POST("/sessions/:id/standing-instructions", s.withoutQuery(instructions.Create))
	write.PATCH("/sessions/:id/standing-instructions/:iid", s.withoutQuery(instructions.Update))
	write.DELETE("/sessions/:id/standing-instructions/:iid", s.withoutQuery(instructions.Delete))
}

// registerResources registers the routes of everything outside sessions.
func (s *Server) registerResources(read, write *gin.RouterGroup, services handlers.Services) {
	search := handlers.NewSearch(services)
	memories := handlers.NewMemories(services)
	usage := handlers.NewUsage(services)
	agents := handlers.NewAgents(services)

	read.GET("/search", s.withErrors(search.Messages))

	write.POST("/memories", s.withoutQuery(memories.Create))
	read.GET("/memories", s.withErrors(memories.List))
	read.POST("/memories/search", s.withoutQuery(memories.Search))
	write.POST("/memories/reindex", s.withErrors(handlers.OwnersOnly), s.withoutQuery(memories.Reindex))
	read.GET("/memories/:id", s.withErrors(memories.Get))
	write.PUT("/memories/:id", s.withErrors(memories.Update))
	write.DELETE("/memories/:id", s.withErrors(memories.Delete))

	webhooks, owners := handlers.NewWebhooks(services), s.withErrors(handlers.OwnersOnly)
	read.GET("/webhook", owners, s.withoutQuery(webhooks.Get))
	write.PUT("/webhook", owners, s.withoutQuery(webhooks.Put))
	write.DELETE("/webhook", owners, s.withoutQuery(webhooks.Delete))

	read.GET("/usage", s.withErrors(usage.Get))

	read.GET("/agents", s.withoutQuery(agents.List))
	read.GET("/agents/:name", s.withoutQuery(agents.Get))
	read.GET("/agents/:name/graph", s.withErrors(agents.Graph))
}

// registerDataRights registers the routes of deletions and user exports. They take no
// Idempotency-Key: a stored answer would be a trace of the deleted data, and a repeated
// deletion is the same deletion.
func (s *Server) registerDataRights(known *gin.RouterGroup, services handlers.Services) {
	rights := handlers.NewDataRights(services)
	remove := known.Group("/api/v1", s.requireScope(core.CanDelete), s.withErrors(handlers.CheckIDs))
	remove.POST("/deletions", s.withoutQuery(rights.Delete))
	remove.GET("/deletions/:id", s.withoutQuery(rights.Get))
	known.Group("/api/v1", s.requireScope(core.CanExport)).GET("/export", s.withErrors(rights.Export))
}
