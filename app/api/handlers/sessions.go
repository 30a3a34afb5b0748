package handlers

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Sessions answers /api/v1/sessions.
type Sessions struct {
	chat  sessionService
	store sessionStore
	usage usageStore
}

// NewSessions returns the handlers of sessions.
func NewSessions(s Services) *Sessions {
	return &Sessions{chat: s.Chat, store: s.Sessions, usage: s.Usage}
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
	Webhook      *webhook    `json:"webhook"`
}

// Create makes a session: 201.
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
		Instructions: body.Instructions, Source: source, Metadata: json.RawMessage(body.Metadata), Webhook: body.Webhook.core(),
	})
	if err != nil {
		return err
	}
	c.Header("Location", "/api/v1/sessions/"+string(session.ID))
	return answer(c, http.StatusCreated, session)
}

// List answers a page of sessions, newest activity first.
func (h *Sessions) List(c *gin.Context) error {
	q := readQuery(c, "agent", "user_id", "q", "archived", "limit", "cursor")
	query := core.SessionQuery{PageQuery: q.page(), Agent: q.text("agent"), UserID: q.text("user_id"), Text: q.text("q"), Archived: q.flag("archived")}
	if err := q.err(); err != nil {
		return err
	}
	if err := checkUser(c, query.UserID); err != nil {
		return err
	}
	page, err := h.store.List(c.Request.Context(), scopeOf(c), query)
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, listOf(page))
}

// Get answers one session with its usage.
func (h *Sessions) Get(c *gin.Context) error {
	session, err := sessionParam(c, h.store)
	if err != nil {
		return err
	}
	usage, err := h.usage.SessionTotal(c.Request.Context(), scopeOf(c), session.ID)
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, core.SessionDetail{Session: session, Usage: usage})
}

// sessionPatch is the body of Update.
type sessionPatch struct {
	Title        *string  `json:"title"`
	Agent        *string  `json:"agent"`
	Model        *string  `json:"model"`
	Timezone     *string  `json:"timezone"`
	Instructions *string  `json:"instructions"`
	Metadata     object   `json:"metadata"`
	Webhook      *webhook `json:"webhook"`
}

// Update changes the fields that the body names and answers the session.
func (h *Sessions) Update(c *gin.Context) error {
	id, err := idParam[core.SessionID](c, "session")
	if err != nil {
		return err
	}
	body, err := readBody[sessionPatch](c)
	if err != nil {
		return err
	}
	if err := checkWebhook(c, body.Webhook); err != nil {
		return err
	}
	session, err := h.chat.UpdateSession(c.Request.Context(), scopeOf(c), id, core.SessionPatch{
		Title: body.Title, Agent: body.Agent, Model: body.Model, Timezone: body.Timezone,
		Instructions: body.Instructions, Metadata: json.RawMessage(body.Metadata), Webhook: body.Webhook.core(),
	})
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, session)
}

// Archive takes a session out of the lists; its messages stay: 204.
func (h *Sessions) Archive(c *gin.Context) error {
	id, err := idParam[core.SessionID](c, "session")
	if err != nil {
		return err
	}
	if err := h.chat.ArchiveSession(c.Request.Context(), scopeOf(c), id); err != nil {
		return err
	}
	return noContent(c)
}

// sessionParam returns the session that the path names.
func sessionParam(c *gin.Context, store sessionStore) (core.Session, error) {
	id, err := idParam[core.SessionID](c, "session")
	if err != nil {
		return core.Session{}, err
	}
	return store.Get(c.Request.Context(), scopeOf(c), id)
}

// sourceOf returns the surface that a body names; nobody may speak as Slack.
func sourceOf(s core.Source) (core.Source, error) {
	switch s {
	case "":
		return core.SourceAPI, nil
	case core.SourceAPI, core.SourceWeb, core.SourceCLI:
		return s, nil
	default:
		return "", invalid([]core.FieldError{{Field: "source", Detail: "must be api, web or cli"}})
	}
}

// listOf returns the page with a list that is never null.
func listOf[T any](p core.Page[T]) core.Page[T] {
	if p.Items == nil {
		p.Items = []T{}
	}
	return p
}
