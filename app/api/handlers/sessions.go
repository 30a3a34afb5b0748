package handlers

import (
	"cmp"
	"context"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

func (h Native) createSession(c *gin.Context, in ops.NewSession) (core.Session, error) {
	if err := checkWebhook(c, in.Webhook); err != nil {
		return core.Session{}, err
	}
	return h.Chat.CreateSession(c.Request.Context(), scopeOf(c), core.Session{
		Agent: in.Agent, Model: in.Model, Title: in.Title, UserID: in.UserID, Timezone: in.Timezone,
		Instructions: in.Instructions, Source: cmp.Or(in.Source, core.SourceAPI), Metadata: in.Metadata, Webhook: in.Webhook.ToCore(),
		Pinned: in.Pinned, Tags: in.Tags, Temporary: in.Temporary,
	})
}

func (h Native) listSessions(c *gin.Context, in core.SessionQuery) (core.Page[core.Session], error) {
	if err := checkUser(c, in.UserID); err != nil {
		return core.Page[core.Session]{}, err
	}
	tenant := scopeOf(c)
	list := func(ctx context.Context) (core.Page[core.Session], error) {
		return h.Sessions.List(ctx, tenant, in)
	}
	if in.Text == "" && in.Tag == "" && in.Metadata == nil {
		return list(c.Request.Context())
	}
	return SearchInPlace(c.Request.Context(), h.Searches, list)
}

func (h Native) getSession(c *gin.Context, in ops.InSession) (core.SessionDetail, error) {
	ctx, tenant := c.Request.Context(), scopeOf(c)
	session, err := h.Sessions.Get(ctx, tenant, in.SessionID)
	if err != nil {
		return core.SessionDetail{}, err
	}
	usage, err := h.Usage.SessionTotal(ctx, tenant, session.ID)
	return core.SessionDetail{Session: session, Usage: usage}, err
}

func (h Native) updateSession(c *gin.Context, in ops.SessionPatch) (core.Session, error) {
	if err := checkWebhook(c, in.Webhook); err != nil {
		return core.Session{}, err
	}
	patch := in.SessionPatch
	patch.Webhook = in.Webhook.ToCore()
	return h.Chat.UpdateSession(c.Request.Context(), scopeOf(c), in.SessionID, patch)
}

func (h Native) archiveSession(c *gin.Context, in ops.InSession) (ops.Nothing, error) {
	_, err := h.Chat.UpdateSession(c.Request.Context(), scopeOf(c), in.SessionID, core.SessionPatch{Archived: new(true)})
	return ops.Nothing{}, err
}

func (h Native) forkSession(c *gin.Context, in core.ForkSession) (core.Session, error) {
	if in.MessageID != "" && !core.ValidID(in.MessageID) {
		return core.Session{}, core.Errorf(core.ErrNotFound, "message %s does not exist", shortenInput(string(in.MessageID)))
	}
	return h.Chat.Fork(c.Request.Context(), scopeOf(c), in)
}

func (h Native) getSlackThread(c *gin.Context, in ops.InSession) (core.SlackThreadStatus, error) {
	return h.Chat.SlackThread(c.Request.Context(), scopeOf(c), in.SessionID)
}

func (h Native) fixSlackPost(c *gin.Context, in ops.SlackPostFix) (core.SlackThreadStatus, error) {
	err := h.Chat.FixSlackPost(c.Request.Context(), scopeOf(c), in.SessionID, in.ItemID, in.Part, in.Action)
	if err != nil {
		return core.SlackThreadStatus{}, err
	}
	return h.getSlackThread(c, in.InSession)
}

func (h Native) putSlackThread(c *gin.Context, in ops.NewSlackThread) (core.SlackThread, error) {
	return h.Chat.AttachSlack(c.Request.Context(), scopeOf(c), core.SlackThread{
		SessionID: in.SessionID, Team: in.Team, Channel: in.Channel, Thread: in.Thread, Mode: in.Mode,
	})
}

func (h Native) deleteSlackThread(c *gin.Context, in ops.InSession) (ops.Nothing, error) {
	return ops.Nothing{}, h.Chat.DetachSlack(c.Request.Context(), scopeOf(c), in.SessionID)
}

// findSession returns a session of the caller.
func (h Native) findSession(c *gin.Context, id core.SessionID) (core.Session, error) {
	return h.Sessions.Get(c.Request.Context(), scopeOf(c), id)
}
