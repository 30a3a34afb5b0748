package handlers

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Slack answers /api/v1/sessions/:id/slack: the thread of Slack that a session is attached to.
type Slack struct {
	chat chatService
}

// NewSlack returns the handlers of threads of Slack.
func NewSlack(s Services) *Slack { return &Slack{chat: s.Chat} }

// Get answers the thread of the session.
func (h *Slack) Get(c *gin.Context) error {
	id := core.SessionID(c.Param("id"))
	thread, err := h.chat.SlackThread(c.Request.Context(), scopeOf(c), id)
	return respond(c, http.StatusOK, thread, err)
}

// Put attaches the session to a thread, or changes its mode, and answers the thread.
func (h *Slack) Put(c *gin.Context) error {
	body, err := readBody[struct {
		Team    string         `json:"team"`
		Channel string         `json:"channel"`
		Thread  string         `json:"thread"`
		Mode    core.SlackMode `json:"mode"`
	}](c)
	if err != nil {
		return err
	}
	id := core.SessionID(c.Param("id"))
	thread, err := h.chat.AttachSlack(c.Request.Context(), scopeOf(c), core.SlackThread{
		SessionID: id, Team: body.Team, Channel: body.Channel, Thread: body.Thread, Mode: body.Mode,
	})
	return respond(c, http.StatusOK, thread, err)
}

// Delete separates the session from its thread: 204. It may be repeated.
func (h *Slack) Delete(c *gin.Context) error {
	return noContent(c, h.chat.DetachSlack(c.Request.Context(), scopeOf(c), core.SessionID(c.Param("id"))))
}
