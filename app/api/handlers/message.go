package handlers

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Get answers one message, on any branch.
func (h *Messages) Get(c *gin.Context) error {
	session, id := messageOf(c)
	message, err := h.messages.Get(c.Request.Context(), scopeOf(c), session, id)
	if err != nil {
		return err
	}
	if message.DeletedAt != nil {
		return core.Errorf(core.ErrNotFound, "message %s was deleted", id)
	}
	return writeJSON(c, http.StatusOK, message)
}

// PutMetadata replaces the metadata of a message and answers the message.
func (h *Messages) PutMetadata(c *gin.Context) error {
	body, err := readBody[struct {
		Metadata object `json:"metadata"`
	}](c)
	if err != nil {
		return err
	}
	if len(body.Metadata) == 0 {
		return invalidError([]core.FieldError{{Field: "metadata", Detail: "is missing"}})
	}
	return h.updateMessage(c, core.MessagePatch{Metadata: json.RawMessage(body.Metadata)})
}

// PutFeedback replaces a person's feedback on a message and answers the message.
func (h *Messages) PutFeedback(c *gin.Context) error {
	body, err := readBody[struct {
		Rating  core.Rating `json:"rating"`
		Comment string      `json:"comment"`
	}](c)
	if err != nil {
		return err
	}
	if body.Rating == "" {
		return invalidError([]core.FieldError{{Field: "rating", Detail: "must be up or down"}})
	}
	return h.updateMessage(c, core.MessagePatch{Feedback: &core.Feedback{Rating: body.Rating, Comment: body.Comment}})
}

// DeleteFeedback removes the feedback on a message: 204. It may be repeated.
func (h *Messages) DeleteFeedback(c *gin.Context) error {
	session, id := messageOf(c)
	_, err := h.chat.UpdateMessage(c.Request.Context(), scopeOf(c), session, id, core.MessagePatch{Feedback: &core.Feedback{}})
	return noContent(c, err)
}

// updateMessage patches the message in the path and answers it.
func (h *Messages) updateMessage(c *gin.Context, patch core.MessagePatch) error {
	session, id := messageOf(c)
	message, err := h.chat.UpdateMessage(c.Request.Context(), scopeOf(c), session, id, patch)
	return respond(c, http.StatusOK, message, err)
}

// Unpin removes the pin of a message: 204. It may be repeated.
func (h *Messages) Unpin(c *gin.Context) error {
	session, id := messageOf(c)
	_, err := h.chat.Pin(c.Request.Context(), scopeOf(c), session, id, false)
	return noContent(c, err)
}
