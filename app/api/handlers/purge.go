package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// PurgeService removes sessions and users for good.
type PurgeService interface {
	Sessions(ctx context.Context, in core.PurgeSessions) (core.PurgeReport, error)
	User(ctx context.Context, in core.PurgeUser) (core.PurgeReport, error)
}

// Purge answers /internal/v1/purge: what the command line asks of the process that
// holds the data folder. It is no part of the API, and no API key opens it.
type Purge struct {
	service PurgeService
}

// NewPurge returns the handlers of purges.
func NewPurge(s PurgeService) *Purge { return &Purge{service: s} }

// Operator lets only the command line in that reads the data folder.
func Operator(c *gin.Context) error {
	if id, ok := core.IdentityFrom(c.Request.Context()); !ok || !id.Operator {
		return core.Errorf(core.ErrForbidden, "only bobbin's own command line, on this machine and with access to the data folder, may ask for this")
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
}

// Sessions removes sessions and answers the report.
func (h *Purge) Sessions(c *gin.Context) error {
	in, err := readBody[purgeSessionsBody](c)
	if err != nil {
		return err
	}
	report, err := h.service.Sessions(c.Request.Context(), core.PurgeSessions{
		IDs: in.IDs, ArchivedBefore: in.ArchivedBefore, Owner: in.Owner,
		PurgeOptions: core.PurgeOptions{DryRun: in.DryRun, Force: in.Force, Compact: in.Compact},
	})
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, report)
}

type purgeUserBody struct {
	Owner   string `json:"owner"`
	User    string `json:"user_id"`
	DryRun  bool   `json:"dry_run"`
	Force   bool   `json:"force"`
	Compact bool   `json:"compact"`
}

// User removes everything of a user and answers the report.
func (h *Purge) User(c *gin.Context) error {
	in, err := readBody[purgeUserBody](c)
	if err != nil {
		return err
	}
	report, err := h.service.User(c.Request.Context(), core.PurgeUser{
		Owner: in.Owner, User: in.User,
		PurgeOptions: core.PurgeOptions{DryRun: in.DryRun, Force: in.Force, Compact: in.Compact},
	})
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, report)
}
