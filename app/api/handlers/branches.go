package handlers

import (
	"cmp"
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// Edit adds a new version of a user's message on a new branch and runs the agent. It
// answers like Send. With run: false it changes the text in place, and answers the message.
func (h *Messages) Edit(c *gin.Context) error {
	session, id := messageOf(c)
	body, err := h.readNewMessage(c, session)
	if err != nil {
		return err
	}
	if !body.wantsRun() {
		// An idempotency key is not its client_message_id.
		if err := body.checkRevision(); err != nil {
			return err
		}
		message, err := h.chat.Revise(KeyedContext(c), scopeOf(c), session, id, body.Content)
		return respond(c, http.StatusOK, messageAnswer{Message: message}, err)
	}
	message, err := body.toSendMessage(session)
	if err != nil {
		return err
	}
	message.Edits = id
	return h.sendAndAnswer(c, message)
}

// regenerate is the body of Regenerate.
type regenerate struct {
	ClientMessageID string          `json:"client_message_id"`
	Model           string          `json:"model"`
	Multitask       core.Multitask  `json:"multitask"`
	UserID          string          `json:"user_id"`
	Source          core.Source     `json:"source"`
	Options         *ops.RunOptions `json:"options"`
}

// Regenerate creates another answer to a message, on a new branch. It answers like Send.
func (h *Messages) Regenerate(c *gin.Context) error {
	session, answer := messageOf(c)
	body, err := readBody[regenerate](c)
	if err != nil {
		return err
	}
	key, err := IdempotencyKey(c.Request)
	if err != nil {
		return err
	}
	id := cmp.Or(body.ClientMessageID, key)
	source, err := sourceOf(body.Source)
	if err != nil {
		return err
	}
	held, err := h.acquireForRun(c)
	if err != nil {
		return err
	}
	defer h.streams.releaseSlot(held)
	accepted, err := h.chat.Regenerate(c.Request.Context(), scopeOf(c), core.Regenerate{
		SessionID: session, MessageID: answer, User: body.UserID, ClientMessageID: id, RequestHash: HashOf(c, id),
		Model: body.Model, Multitask: body.Multitask, Source: source, Options: (*core.RunOptions)(body.Options),
	})
	if err != nil {
		return err
	}
	return h.answerRun(c, held, accepted.Run)
}

// Select makes the branch through a message the current path and answers the
// session.
func (h *Messages) Select(c *gin.Context) error {
	session, id := messageOf(c)
	if _, err := readBody[struct{}](c); err != nil {
		return err
	}
	selected, err := h.chat.Select(c.Request.Context(), scopeOf(c), session, id)
	return respond(c, http.StatusOK, selected, err)
}

// Delete deletes a message: 204. It may be repeated.
func (h *Messages) Delete(c *gin.Context) error {
	session, id := messageOf(c)
	return noContent(c, h.chat.DeleteMessage(c.Request.Context(), scopeOf(c), session, id))
}

// Pin pins or unpins a message and answers the message. It may be repeated.
func (h *Messages) Pin(c *gin.Context) error {
	session, id := messageOf(c)
	body, err := readBody[struct {
		Pinned *bool `json:"pinned"`
	}](c)
	if err != nil {
		return err
	}
	if body.Pinned == nil {
		return invalidError([]core.FieldError{{Field: "pinned", Detail: "must be true or false"}})
	}
	message, err := h.chat.Pin(c.Request.Context(), scopeOf(c), session, id, *body.Pinned)
	return respond(c, http.StatusOK, message, err)
}

// messageOf returns the session and the message in the path.
func messageOf(c *gin.Context) (core.SessionID, core.MessageID) {
	return core.SessionID(c.Param("id")), core.MessageID(c.Param("mid"))
}
