package handlers

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Webhooks answers /api/v1/webhook: the owner's default webhook, used when neither the
// message nor the session has one.
type Webhooks struct {
	chat chatService
}

// NewWebhooks returns the handlers of default webhooks.
func NewWebhooks(s Services) *Webhooks { return &Webhooks{chat: s.Chat} }

// Get answers the owner's webhook, without its secret.
func (h *Webhooks) Get(c *gin.Context) error {
	hook, err := h.chat.DefaultWebhook(c.Request.Context(), scopeOf(c))
	return respond(c, http.StatusOK, hook, err)
}

// Put replaces the owner's webhook and answers it.
func (h *Webhooks) Put(c *gin.Context) error {
	body, err := readBody[struct {
		URL    string `json:"url"`
		Secret string `json:"secret"`
	}](c)
	if err != nil {
		return err
	}
	hook, err := h.chat.SetDefaultWebhook(c.Request.Context(), scopeOf(c), core.Webhook{URL: core.Target(body.URL), Secret: body.Secret})
	return respond(c, http.StatusOK, hook, err)
}

// Delete removes the owner's webhook: 204. It may be repeated.
func (h *Webhooks) Delete(c *gin.Context) error {
	return noContent(c, h.chat.DeleteDefaultWebhook(c.Request.Context(), scopeOf(c)))
}
