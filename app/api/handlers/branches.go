package handlers

import (
	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// getMessage answers one message, on any branch.
func (h Native) getMessage(c *gin.Context, in ops.InMessage) (core.Message, error) {
	message, err := h.Messages.Get(c.Request.Context(), scopeOf(c), in.SessionID, in.MessageID)
	if err == nil && message.DeletedAt != nil {
		err = core.Errorf(core.ErrNotFound, "message %s was deleted", in.MessageID)
	}
	return message, err
}

// selectMessage makes the branch through a message the current path.
func (h Native) selectMessage(c *gin.Context, in ops.InMessage) (core.Session, error) {
	return h.Chat.Select(c.Request.Context(), scopeOf(c), in.SessionID, in.MessageID)
}

// deleteMessage deletes a message. It may be repeated.
func (h Native) deleteMessage(c *gin.Context, in ops.InMessage) (ops.Nothing, error) {
	return ops.Nothing{}, h.Chat.DeleteMessage(c.Request.Context(), scopeOf(c), in.SessionID, in.MessageID)
}

// pinMessage pins or unpins a message. It may be repeated.
func (h Native) pinMessage(c *gin.Context, in ops.Pinned) (core.Message, error) {
	if in.Pinned == nil {
		return core.Message{}, invalidError([]core.FieldError{{Field: "pinned", Detail: "must be true or false"}})
	}
	return h.Chat.Pin(c.Request.Context(), scopeOf(c), in.SessionID, in.MessageID, *in.Pinned)
}

func (h Native) unpinMessage(c *gin.Context, in ops.InMessage) (ops.Nothing, error) {
	_, err := h.Chat.Pin(c.Request.Context(), scopeOf(c), in.SessionID, in.MessageID, false)
	return ops.Nothing{}, err
}

func (h Native) putMetadata(c *gin.Context, in ops.MessageMetadata) (core.Message, error) {
	if len(in.Metadata) == 0 {
		return core.Message{}, invalidError([]core.FieldError{{Field: "metadata", Detail: "is missing"}})
	}
	return h.patchMessage(c, in.InMessage, core.MessagePatch{Metadata: in.Metadata})
}

func (h Native) putFeedback(c *gin.Context, in ops.MessageFeedback) (core.Message, error) {
	if in.Rating == "" {
		return core.Message{}, invalidError([]core.FieldError{{Field: "rating", Detail: "must be up or down"}})
	}
	return h.patchMessage(c, in.InMessage, core.MessagePatch{Feedback: &core.Feedback{Rating: in.Rating, Comment: in.Comment}})
}

func (h Native) deleteFeedback(c *gin.Context, in ops.InMessage) (ops.Nothing, error) {
	_, err := h.patchMessage(c, in, core.MessagePatch{Feedback: &core.Feedback{}})
	return ops.Nothing{}, err
}

func (h Native) patchMessage(c *gin.Context, in ops.InMessage, patch core.MessagePatch) (core.Message, error) {
	return h.Chat.UpdateMessage(c.Request.Context(), scopeOf(c), in.SessionID, in.MessageID, patch)
}
