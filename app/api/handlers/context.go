package handlers

import (
	"context"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Context answers …/context and …/summarize.
type Context struct {
	chat    chatService
	streams *StreamLimiter
}

// NewContext returns the handlers of the context.
func NewContext(s Services, streams *StreamLimiter) *Context {
	return &Context{chat: s.Chat, streams: streams}
}

// Report answers the plan for the next turn.
func (h *Context) Report(c *gin.Context) error {
	id := core.SessionID(c.Param("id"))
	report, err := h.chat.Context(c.Request.Context(), scopeOf(c), id)
	return respond(c, http.StatusOK, report, err)
}

// Prompt answers the exact prompt of the next model call.
func (h *Context) Prompt(c *gin.Context) error {
	id := core.SessionID(c.Param("id"))
	prompt, err := h.chat.Prompt(c.Request.Context(), scopeOf(c), id)
	return respond(c, http.StatusOK, prompt, err)
}

// Where answers whether and how a message is in the next prompt, and why.
func (h *Context) Where(c *gin.Context) error {
	session, id := messageOf(c)
	where, err := h.chat.Where(c.Request.Context(), scopeOf(c), session, id)
	return respond(c, http.StatusOK, where, err)
}

// Turns answers where all messages are in the next prompt, and the sizes of earlier prompts.
func (h *Context) Turns(c *gin.Context) error {
	id := core.SessionID(c.Param("id"))
	turns, err := h.chat.Turns(c.Request.Context(), scopeOf(c), id)
	return respond(c, http.StatusOK, turns, err)
}

// Plan answers a preview of the next prompt with another model, policy or message.
func (h *Context) Plan(c *gin.Context) error {
	id := core.SessionID(c.Param("id"))
	body, err := readBody[struct {
		Model   string `json:"model"`
		Policy  string `json:"policy"`
		Content string `json:"content"`
	}](c)
	if err != nil {
		return err
	}
	plan, err := h.chat.DryRun(c.Request.Context(), scopeOf(c), id, core.PlanPreview{Model: body.Model, Policy: body.Policy, Content: body.Content})
	return respond(c, http.StatusOK, plan, err)
}

// Summarize creates a summary now and answers it.
func (h *Context) Summarize(c *gin.Context) error {
	id := core.SessionID(c.Param("id"))
	body, err := readBody[struct {
		Focus string `json:"focus"` // what the summary must keep
	}](c)
	if err != nil {
		return err
	}
	tenant := scopeOf(c)
	held, err := h.streams.acquireSlot(c)
	if err != nil {
		return err
	}
	defer h.streams.releaseSlot(held)
	ctx, cancel := context.WithTimeout(c.Request.Context(), h.streams.limits.Wait)
	defer cancel()
	summary, err := h.chat.Summarize(ctx, tenant, id, body.Focus)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		return &core.Error{Kind: core.ErrTimeout, Message: "the summary took too long; the session is unchanged", Err: err}
	}
	return respond(c, http.StatusOK, summary, err)
}
