package handlers

import (
	"cmp"
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Edit puts a new version of a user's message beside it, on a branch of its own,
// and runs the agent. It answers like Send.
func (h *Messages) Edit(c *gin.Context) error {
	id, err := messageParam(c)
	if err != nil {
		return err
	}
	message, err := h.readMessage(c)
	if err != nil {
		return err
	}
	message.Edits = id
	return h.run(c, h.sending(message))
}

// regenerate is the body of Regenerate.
type regenerate struct {
	ClientMessageID string         `json:"client_message_id"`
	Model           string         `json:"model"`
	Multitask       core.Multitask `json:"multitask"`
	UserID          string         `json:"user_id"`
	Source          core.Source    `json:"source"`
}

// Regenerate has a message answered anew, on a branch of its own. It answers like
// Send.
func (h *Messages) Regenerate(c *gin.Context) error {
	session, id, err := messageOf(c)
	if err != nil {
		return err
	}
	body, err := readBody[regenerate](c)
	if err != nil {
		return err
	}
	key, err := IdempotencyKey(c.Request)
	if err != nil {
		return err
	}
	source, err := sourceOf(body.Source)
	if err != nil {
		return err
	}
	if err := checkMultitask(body.Multitask); err != nil {
		return err
	}
	return h.run(c, func(ctx context.Context, scope core.Scope) (core.Accepted, error) {
		return h.chat.Regenerate(ctx, scope, core.Regenerate{
			SessionID: session, MessageID: id, User: body.UserID, ClientMessageID: cmp.Or(body.ClientMessageID, key),
			Model: body.Model, Multitask: body.Multitask, Source: source,
		})
	})
}

// Select makes the branch through a message the current path and answers the
// session.
func (h *Messages) Select(c *gin.Context) error {
	session, id, err := messageOf(c)
	if err != nil {
		return err
	}
	if _, err := readBody[struct{}](c); err != nil {
		return err
	}
	selected, err := h.chat.Select(c.Request.Context(), scopeOf(c), session, id)
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, selected)
}

// Delete is a user's own deletion of a message: 204. It may be repeated.
func (h *Messages) Delete(c *gin.Context) error {
	session, id, err := messageOf(c)
	if err != nil {
		return err
	}
	if err := h.chat.DeleteMessage(c.Request.Context(), scopeOf(c), session, id); err != nil {
		return err
	}
	return noContent(c)
}

// pin is the body of Pin.
type pin struct {
	Pinned *bool `json:"pinned"`
}

// Pin pins a message or unpins it, and answers it. It may be repeated.
func (h *Messages) Pin(c *gin.Context) error {
	session, id, err := messageOf(c)
	if err != nil {
		return err
	}
	body, err := readBody[pin](c)
	if err != nil {
		return err
	}
	if body.Pinned == nil {
		return invalid([]core.FieldError{{Field: "pinned", Detail: "must be true or false"}})
	}
	message, err := h.chat.Pin(c.Request.Context(), scopeOf(c), session, id, *body.Pinned)
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, message)
}

// forkSession is the body of Fork.
type forkSession struct {
	MessageID core.MessageID `json:"message_id"`
}

// Fork copies a session up to a message: 201 with the copy.
func (h *Sessions) Fork(c *gin.Context) error {
	id, err := idParam[core.SessionID](c, "session")
	if err != nil {
		return err
	}
	body, err := readBody[forkSession](c)
	if err != nil {
		return err
	}
	if body.MessageID != "" && !core.ValidID(body.MessageID) {
		return noMessage(string(body.MessageID))
	}
	fork, err := h.chat.Fork(c.Request.Context(), scopeOf(c), core.ForkSession{SessionID: id, MessageID: body.MessageID})
	if err != nil {
		return err
	}
	c.Header("Location", "/api/v1/sessions/"+string(fork.ID))
	return answer(c, http.StatusCreated, fork)
}

// messageOf returns the session and the message in the path.
func messageOf(c *gin.Context) (core.SessionID, core.MessageID, error) {
	session, err := idParam[core.SessionID](c, "session")
	if err != nil {
		return "", "", err
	}
	id, err := messageParam(c)
	return session, id, err
}

// messageParam returns the message in the path.
func messageParam(c *gin.Context) (core.MessageID, error) {
	id := core.MessageID(c.Param("mid"))
	if !core.ValidID(id) {
		return "", noMessage(string(id))
	}
	return id, nil
}

func noMessage(id string) error {
	return core.Errorf(core.ErrNotFound, "message %s does not exist", shorten(id))
}
