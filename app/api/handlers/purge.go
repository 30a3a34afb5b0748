package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Purge answers /internal/v1/purge, which the command line calls in the process that holds
// the data folder. It is not part of the public API, and API keys have no access.
type Purge struct {
	PurgeSessions func(ctx context.Context, in core.PurgeSessions) (core.PurgeReport, error)
	PurgeUser     func(ctx context.Context, in core.PurgeUser) (core.PurgeReport, error)
}

// Operator admits only the command line with access to the data folder.
func Operator(c *gin.Context) error {
	if id, ok := core.IdentityFrom(c.Request.Context()); !ok || !id.Operator {
		return core.Errorf(core.ErrForbidden, "this is only for the bobbin command line on this machine, with access to the data folder")
	}
	return nil
}

type purgeSessionsBody struct {
	IDs            []core.SessionID `json:"ids"`
	ArchivedBefore *time.Time       `json:"archived_before"`
	Owner          string           `json:"owner"`
	DryRun         bool             `json:"dry_run"`
	Force          bool             `json:"force"`
	Compact        bool             `json:"compact"`
	SlackPosts     bool             `json:"slack_posts"`
}

// Sessions removes sessions and answers the report.
func (h *Purge) Sessions(c *gin.Context) error {
	in, err := readBody[purgeSessionsBody](c)
	if err != nil {
		return err
	}
	report, err := h.PurgeSessions(c.Request.Context(), core.PurgeSessions{
		IDs: in.IDs, ArchivedBefore: in.ArchivedBefore, Owner: in.Owner,
		PurgeOptions: core.PurgeOptions{DryRun: in.DryRun, Force: in.Force, Compact: in.Compact, SlackPosts: in.SlackPosts},
	})
	return respond(c, http.StatusOK, report, err)
}

type purgeUserBody struct {
	Owner      string `json:"owner"`
	User       string `json:"user_id"`
	DryRun     bool   `json:"dry_run"`
	Force      bool   `json:"force"`
	Compact    bool   `json:"compact"`
	SlackPosts bool   `json:"slack_posts"`
}

// User removes all data of a user and answers the report.
func (h *Purge) User(c *gin.Context) error {
	in, err := readBody[purgeUserBody](c)
	if err != nil {
		return err
	}
	report, err := h.PurgeUser(c.Request.Context(), core.PurgeUser{
		Owner: in.Owner, User: in.User,
		PurgeOptions: core.PurgeOptions{DryRun: in.DryRun, Force: in.Force, Compact: in.Compact, SlackPosts: in.SlackPosts},
	})
	return respond(c, http.StatusOK, report, err)
}
