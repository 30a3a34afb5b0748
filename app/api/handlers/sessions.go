package handlers

import (
	"cmp"
	"context"
	"iter"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

func (h Native) registerSessions(r Router) {
	bind(r, ops.CreateSession, func(ctx context.Context, tenant core.Tenant, in ops.NewSession) (core.Session, error) {
		if err := checkWebhook(tenant, in.Webhook); err != nil {
			return core.Session{}, err
		}
		return h.Chat.CreateSession(ctx, tenant, core.Session{
			Agent: in.Agent, Model: in.Model, Title: in.Title, UserID: in.UserID, Timezone: in.Timezone,
			Instructions: in.Instructions, Source: cmp.Or(in.Source, core.SourceAPI), Metadata: in.Metadata, Webhook: in.Webhook.ToCore(),
			Pinned: in.Pinned, Tags: in.Tags, Temporary: in.Temporary,
		})
	})
	bind(r, ops.ListSessions, h.ListSessions)
	bind(r, ops.GetSession, func(ctx context.Context, tenant core.Tenant, in ops.InSession) (core.SessionDetail, error) {
		session, err := h.Sessions.Get(ctx, tenant, in.SessionID)
		if err != nil {
			return core.SessionDetail{}, err
		}
		usage, err := h.Usage.SessionTotal(ctx, tenant, session.ID)
		return core.SessionDetail{Session: session, Usage: usage}, err
	})
	bind(r, ops.UpdateSession, func(ctx context.Context, tenant core.Tenant, in ops.SessionPatch) (core.Session, error) {
		if err := checkWebhook(tenant, in.Webhook); err != nil {
			return core.Session{}, err
		}
		in.SessionPatch.Webhook = in.Webhook.ToCore()
		return h.Chat.UpdateSession(ctx, tenant, in.SessionID, in.SessionPatch)
	})
	bindDone(r, ops.ArchiveSession, func(ctx context.Context, tenant core.Tenant, in ops.InSession) error {
		_, err := h.Chat.UpdateSession(ctx, tenant, in.SessionID, core.SessionPatch{Archived: new(true)})
		return err
	})
	bind(r, ops.ForkSession, func(ctx context.Context, tenant core.Tenant, in core.ForkSession) (core.Session, error) {
		if in.MessageID != "" && !core.ValidID(in.MessageID) {
			return core.Session{}, core.Errorf(core.ErrNotFound, "message %s does not exist", core.Clip(string(in.MessageID), maxShown))
		}
		return h.Chat.Fork(ctx, tenant, in)
	})
	bind(r, ops.GetSlackThread, func(ctx context.Context, tenant core.Tenant, in ops.InSession) (core.SlackThreadStatus, error) {
		return h.Chat.SlackThread(ctx, tenant, in.SessionID)
	})
	bind(r, ops.FixSlackPost, func(ctx context.Context, tenant core.Tenant, in core.SlackPostFix) (core.SlackThreadStatus, error) {
		if err := h.Chat.FixSlackPost(ctx, tenant, in); err != nil {
			return core.SlackThreadStatus{}, err
		}
		return h.Chat.SlackThread(ctx, tenant, in.SessionID)
	})
	bind(r, ops.PutSlackThread, func(ctx context.Context, tenant core.Tenant, in ops.NewSlackThread) (core.SlackThread, error) {
		return h.Chat.AttachSlack(ctx, tenant, core.SlackThread{SessionID: in.SessionID, Team: in.Team, Channel: in.Channel, Thread: in.Thread, Mode: in.Mode})
	})
	bindDone(r, ops.DeleteSlackThread, func(ctx context.Context, tenant core.Tenant, in ops.InSession) error {
		return h.Chat.DetachSlack(ctx, tenant, in.SessionID)
	})
	bindRaw(r, ops.ExportSession, h.exportSession)
	bindRaw(r, ops.WatchSessions, func(c *gin.Context, _ struct{}) error { // the heads as they change
		tenant := scopeOf(c)
		return h.stream(c, "", true, func(ctx context.Context) iter.Seq2[core.Event, error] { return h.Chat.Feed.WatchHeads(ctx, tenant) })
	})
	bindRaw(r, ops.WatchSession, h.watchSession)
}
