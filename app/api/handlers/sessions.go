package handlers

import (
	"cmp"
	"context"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// Sessions answers the operations on sessions.
type Sessions struct{ Services }

// Register registers the operations.
func (h Sessions) Register(r Router) {
	bind(r, ops.CreateSession, h.create)
	bind(r, ops.ListSessions, h.list)
	bind(r, ops.GetSession, h.get)
	bind(r, ops.UpdateSession, h.update)
	bind(r, ops.ArchiveSession, h.archive)
	bind(r, ops.ForkSession, h.fork)
}

func (h Sessions) create(c *gin.Context, in ops.NewSession) (core.Session, error) {
	if err := checkWebhook(c, in.Webhook); err != nil {
		return core.Session{}, err
	}
	return h.Chat.CreateSession(c.Request.Context(), scopeOf(c), core.Session{
		Agent: in.Agent, Model: in.Model, Title: in.Title, UserID: in.UserID, Timezone: in.Timezone,
		Instructions: in.Instructions, Source: cmp.Or(in.Source, core.SourceAPI), Metadata: in.Metadata, Webhook: in.Webhook.ToCore(),
		Pinned: in.Pinned, Tags: in.Tags, Temporary: in.Temporary,
	})
}

func (h Sessions) list(c *gin.Context, in core.SessionQuery) (core.Page[core.Session], error) {
	if err := checkUser(c, in.UserID); err != nil {
		return core.Page[core.Session]{}, err
	}
	list := func(ctx context.Context) (core.Page[core.Session], error) {
		return h.Services.Sessions.List(ctx, scopeOf(c), in)
	}
	if in.Text == "" && in.Tag == "" && in.Metadata == nil {
		return list(c.Request.Context())
	}
	return SearchInPlace(c.Request.Context(), h.Searches, list)
}

func (h Sessions) get(c *gin.Context, in ops.InSession) (core.SessionDetail, error) {
	ctx, tenant := c.Request.Context(), scopeOf(c)
	session, err := h.Services.Sessions.Get(ctx, tenant, in.SessionID)
	if err != nil {
		return core.SessionDetail{}, err
	}
	usage, err := h.Usage.SessionTotal(ctx, tenant, session.ID)
	return core.SessionDetail{Session: session, Usage: usage}, err
}

func (h Sessions) update(c *gin.Context, in ops.SessionPatch) (core.Session, error) {
	if err := checkWebhook(c, in.Webhook); err != nil {
		return core.Session{}, err
	}
	patch := in.SessionPatch
	patch.Webhook = in.Webhook.ToCore()
	return h.Chat.UpdateSession(c.Request.Context(), scopeOf(c), in.SessionID, patch)
}

func (h Sessions) archive(c *gin.Context, in ops.InSession) (ops.Nothing, error) {
	_, err := h.Chat.UpdateSession(c.Request.Context(), scopeOf(c), in.SessionID, core.SessionPatch{Archived: new(true)})
	return ops.Nothing{}, err
}

func (h Sessions) fork(c *gin.Context, in core.ForkSession) (core.Session, error) {
	if in.MessageID != "" && !core.ValidID(in.MessageID) {
		return core.Session{}, core.Errorf(core.ErrNotFound, "message %s does not exist", shortenInput(string(in.MessageID)))
	}
	return h.Chat.Fork(c.Request.Context(), scopeOf(c), in)
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
