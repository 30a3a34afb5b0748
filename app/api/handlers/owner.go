package handlers

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// registerOwner registers what belongs to no session: the default webhook, usage, agents, and data rights.
func (h Native) registerOwner(r Router) {
	bind(r, ops.GetWebhook, func(ctx context.Context, tenant core.Tenant, _ struct{}) (core.Webhook, error) {
		return h.Chat.Webhooks.Get(ctx, tenant.Owner)
	})
	bind(r, ops.PutWebhook, func(ctx context.Context, tenant core.Tenant, in ops.NewWebhook) (core.Webhook, error) {
		return h.Chat.SetDefaultWebhook(ctx, tenant, *in.ToCore())
	})
	bindDone(r, ops.DeleteWebhook, func(ctx context.Context, tenant core.Tenant, _ struct{}) error {
		return h.Chat.Webhooks.Delete(ctx, tenant.Owner)
	})
	bind(r, ops.GetUsage, h.getUsage)
	bind(r, ops.ListAgents, func(context.Context, core.Tenant, struct{}) (page core.Page[core.AgentDetail], err error) {
		for _, agent := range h.Agents.List() {
			page.Items = append(page.Items, core.AgentDetail{Agent: agent, Models: h.Models(agent.Model)})
		}
		return page, nil
	})
	bind(r, ops.GetAgent, func(_ context.Context, _ core.Tenant, in ops.InAgent) (core.AgentDetail, error) {
		agent, err := h.Agents.Get(in.Name)
		return core.AgentDetail{Agent: agent, Models: h.Models(agent.Model)}, err
	})
	bindRaw(r, ops.GetAgentGraph, func(c *gin.Context, in ops.AgentGraph) error { // as JSON, or as the text of a Mermaid drawing
		if in.Format != "mermaid" {
			graph, err := h.Graph(in.Name)
			if err != nil {
				return err
			}
			return writeJSON(c, http.StatusOK, graph)
		}
		drawing, err := h.Mermaid(in.Name)
		if err == nil {
			Write(c, http.StatusOK, "text/plain; charset=utf-8", []byte(drawing))
		}
		return err
	})
	bind(r, ops.CreateDeletion, func(ctx context.Context, tenant core.Tenant, in ops.NewDeletion) (core.Deletion, error) {
		if (in.SessionID == "") == (in.UserID == "") {
			return core.Deletion{}, core.OneFault("session_id", "is missing: give session_id or user_id, not both")
		}
		if in.SessionID != "" {
			return h.Purges.DeleteSession(ctx, tenant, in.SessionID, in.SlackPosts)
		}
		if err := checkNamedUser(tenant, in.UserID); err != nil {
			return core.Deletion{}, err
		}
		return h.Purges.DeleteUser(ctx, tenant, in.UserID, in.SlackPosts)
	})
	bind(r, ops.GetDeletion, func(ctx context.Context, tenant core.Tenant, in ops.InDeletion) (core.Deletion, error) {
		return h.Purges.Deletions.Get(ctx, tenant, in.DeletionID)
	})
	bindRaw(r, ops.ExportUser, func(c *gin.Context, in ops.UserExport) error {
		tenant := scopeOf(c)
		return h.sendExport(c, core.UserExport{Owner: tenant.Owner, User: cmp.Or(in.UserID, tenant.User), OwnersView: tenant.User == ""})
	})
}

const day = 24 * time.Hour

// getUsage answers the usage of the caller's model calls: a page of groups, and the total.
func (h Native) getUsage(ctx context.Context, tenant core.Tenant, in core.UsageQuery) (core.UsageReport, error) {
	in.GroupBy = cmp.Or(in.GroupBy, core.UsageByDay)
	// Whole days, so that the next page has the same range.
	if in.To.IsZero() {
		in.To = time.Now().UTC().Truncate(day).Add(day)
	}
	if in.From.IsZero() {
		in.From = in.To.Add(-30 * day)
	}
	if !in.From.Before(in.To) {
		return core.UsageReport{}, core.OneFault("to", "must be after from")
	}
	report, err := h.Usage.Usage(ctx, tenant, in)
	if report.Items == nil {
		report.Items = []core.UsageRow{}
	}
	return report, err
}

// maxUserID bounds a user's id, in bytes, as everywhere.
const maxUserID = 200

// checkNamedUser refuses invalid user ids, and other users than the end user who asks.
func checkNamedUser(tenant core.Tenant, user string) error {
	if len(user) > maxUserID || core.CleanText(user) != user {
		return core.OneFault("user_id", "must be at most %d bytes of text", maxUserID)
	}
	return tenant.CheckUser(user)
}

// sendExport sends all data of a user as a file. An error in the middle breaks the connection,
// so that a partial file is not mistaken for a complete one.
func (h Native) sendExport(c *gin.Context, in core.UserExport) error {
	if in.Owner == "" {
		return core.OneFault("owner", "is missing: name the owner")
	}
	if in.User == "" {
		return core.OneFault("user_id", "is missing: name the user")
	}
	if err := checkNamedUser(scopeOf(c), in.User); err != nil {
		return err
	}
	return h.Transfer.ExportUser(c.Request.Context(), scopeOf(c), in, beginFile(c, "application/zip", "user-export.zip"))
}
