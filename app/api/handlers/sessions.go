package handlers

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
	"bobbin/app/core/quota"
)

// Sessions answers /api/v1/sessions.
type Sessions struct {
	chat   chatService
	store  core.SessionStore
	usage  core.UsageStore
	places *quota.Quota // for searches
}

// NewSessions returns the handlers of sessions.
func NewSessions(s Services) *Sessions {
	return &Sessions{chat: s.Chat, store: s.Sessions, usage: s.Usage, places: s.Searches}
}

// newSession is the body of Create.
type newSession struct {
	Agent        string      `json:"agent"`
	Model        string      `json:"model"`
	Title        string      `json:"title"`
	UserID       string      `json:"user_id"`
	Timezone     string      `json:"timezone"`
	Instructions string      `json:"instructions"`
	Source       core.Source `json:"source"`
	Metadata     object      `json:"metadata"`
	Pinned       bool        `json:"pinned"`
	Tags         []string    `json:"tags"`
	Webhook      *webhook    `json:"webhook"`
	Temporary    bool        `json:"temporary"`
}

// Create creates a session: 201.
func (h *Sessions) Create(c *gin.Context) error {
	body, err := readBody[newSession](c)
	if err != nil {
		return err
	}
	source, err := sourceOf(body.Source)
	if err != nil {
		return err
	}
	if err := checkWebhook(c, body.Webhook); err != nil {
		return err
	}
	session, err := h.chat.CreateSession(c.Request.Context(), scopeOf(c), core.Session{
		Agent: body.Agent, Model: body.Model, Title: body.Title, UserID: body.UserID, Timezone: body.Timezone,
		Instructions: body.Instructions, Source: source, Metadata: json.RawMessage(body.Metadata), Webhook: body.Webhook.toCore(),
		Pinned: body.Pinned, Tags: body.Tags, Temporary: body.Temporary,
	})
	if err != nil {
		return err
	}
	c.Header("Location", "/api/v1/sessions/"+string(session.ID))
	return writeJSON(c, http.StatusCreated, session)
}

// List answers a page of sessions, newest activity first.
func (h *Sessions) List(c *gin.Context) error {
	q := readQuery(c, "q", "in", "agent", "user_id", "status", "pinned", "tag", "metadata", "created_after", "created_before",
		"updated_after", "updated_before", "archived", "order", "include", "limit", "cursor")
	query := core.SessionQuery{
		PageQuery: q.pageParams(), Order: core.SessionOrder(q.choiceParam("order", string(core.OrderByActivity), string(core.OrderByCreation), string(core.OrderByRelevance))),
		Text: q.textParam("q"), TitlesOnly: q.choiceParam("in", "title") != "", Agent: q.textParam("agent"), UserID: q.textParam("user_id"),
		Status: core.SessionStatus(q.choiceParam("status", string(core.SessionIdle), string(core.SessionQueued), string(core.SessionRunning), string(core.SessionWaiting))),
		Pinned: q.optionalBool("pinned"), Tag: q.textParam("tag"), Metadata: q.objectParam("metadata"),
		Created:  core.TimeRange{After: q.timeParam("created_after"), Before: q.timeParam("created_before")},
		Updated:  core.TimeRange{After: q.timeParam("updated_after"), Before: q.timeParam("updated_before")},
		Archived: q.boolParam("archived"), Summaries: q.choiceParam("include", "summary") != "",
	}
	if query.TitlesOnly && query.Text == "" {
		q.faults.Add("in", "requires q")
	}
	switch {
	case query.Order == core.OrderByRelevance && (query.Text == "" || query.TitlesOnly):
		q.faults.Add("order", "relevance requires q, without in=title")
	case query.Order == "" && query.Text != "" && !query.TitlesOnly:
		query.Order = core.OrderByRelevance
	}
	if err := q.err(); err != nil {
		return err
	}
	if err := checkUser(c, query.UserID); err != nil {
		return err
	}
	tenant := scopeOf(c)
	list := func(ctx context.Context) (core.Page[core.Session], error) { return h.store.List(ctx, tenant, query) }
	var page core.Page[core.Session]
	var err error
	if query.Text == "" && query.Tag == "" && query.Metadata == nil {
		page, err = list(c.Request.Context())
	} else {
		page, err = SearchInPlace(c.Request.Context(), h.places, list)
	}
	if err != nil {
		return err
	}
	return writePage(c, page)
}

// Get answers one session with its usage.
func (h *Sessions) Get(c *gin.Context) error {
	session, err := sessionParam(c, h.store)
	if err != nil {
		return err
	}
	usage, err := h.usage.SessionTotal(c.Request.Context(), scopeOf(c), session.ID)
	return respond(c, http.StatusOK, core.SessionDetail{Session: session, Usage: usage}, err)
}

// sessionPatch is the body of Update.
type sessionPatch struct {
	Title        *string  `json:"title"`
	Agent        *string  `json:"agent"`
	Model        *string  `json:"model"`
	Timezone     *string  `json:"timezone"`
	Instructions *string  `json:"instructions"`
	Metadata     object   `json:"metadata"`
	Pinned       *bool    `json:"pinned"`
	Tags         []string `json:"tags"`
	Webhook      *webhook `json:"webhook"`
	Archived     *bool    `json:"archived"`
	Force        bool     `json:"force"`
}

// Update changes the given fields and answers the session.
func (h *Sessions) Update(c *gin.Context) error {
	id := core.SessionID(c.Param("id"))
	body, err := readBody[sessionPatch](c)
	if err != nil {
		return err
	}
	if err := checkWebhook(c, body.Webhook); err != nil {
		return err
	}
	session, err := h.chat.UpdateSession(c.Request.Context(), scopeOf(c), id, core.SessionPatch{
		Title: body.Title, Agent: body.Agent, Model: body.Model, Timezone: body.Timezone,
		Instructions: body.Instructions, Metadata: json.RawMessage(body.Metadata), Webhook: body.Webhook.toCore(),
		Pinned: body.Pinned, Tags: body.Tags, Archived: body.Archived, Force: body.Force,
	})
	return respond(c, http.StatusOK, session, err)
}

// Archive hides a session from lists and keeps its messages: 204.
func (h *Sessions) Archive(c *gin.Context) error {
	id := core.SessionID(c.Param("id"))
	_, err := h.chat.UpdateSession(c.Request.Context(), scopeOf(c), id, core.SessionPatch{Archived: new(true)})
	return noContent(c, err)
}

// sessionParam returns the session in the path.
func sessionParam(c *gin.Context, store core.SessionStore) (core.Session, error) {
	return store.Get(c.Request.Context(), scopeOf(c), core.SessionID(c.Param("id")))
}

// sourceOf checks the surface that a body names; requests cannot claim to be Slack.
func sourceOf(s core.Source) (core.Source, error) {
	switch s {
	case "":
		return core.SourceAPI, nil
	case core.SourceAPI, core.SourceWeb, core.SourceCLI:
		return s, nil
	default:
		return "", invalidError([]core.FieldError{{Field: "source", Detail: "must be api, web or cli"}})
	}
}
