package handlers

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// maxUserID bounds a user's id, in bytes, as everywhere.
const maxUserID = 200

// createDeletion accepts the deletion of a session or of a user. It may be repeated.
func (h Native) createDeletion(ctx context.Context, tenant core.Tenant, in ops.NewDeletion) (core.Deletion, error) {
	if (in.SessionID == "") == (in.UserID == "") {
		return core.Deletion{}, invalidError([]core.FieldError{{Field: "session_id", Detail: "is missing: give session_id or user_id, not both"}})
	}
	if in.SessionID != "" {
		return h.Deletions.Session(ctx, tenant, in.SessionID, in.SlackPosts)
	}
	if err := checkNamedUser(tenant, in.UserID); err != nil {
		return core.Deletion{}, err
	}
	return h.Deletions.User(ctx, tenant, in.UserID, in.SlackPosts)
}

// checkNamedUser refuses invalid user ids, and other users than the end user who asks.
func checkNamedUser(tenant core.Tenant, user string) error {
	if len(user) > maxUserID || core.CleanText(user) != user {
		return invalidError([]core.FieldError{{Field: "user_id", Detail: fmt.Sprintf("must be at most %d bytes of text", maxUserID)}})
	}
	return checkUser(tenant, user)
}

// sendExport sends all data of a user as a file. An error in the middle breaks the connection,
// so that a partial file is not mistaken for a complete one.
func (h Native) sendExport(c *gin.Context, in core.UserExport) error {
	if in.Owner == "" {
		return invalidError([]core.FieldError{{Field: "owner", Detail: "is missing: name the owner"}})
	}
	if in.User == "" {
		return invalidError([]core.FieldError{{Field: "user_id", Detail: "is missing: name the user"}})
	}
	if err := checkNamedUser(scopeOf(c), in.User); err != nil {
		return err
	}
	out := &fileWriter{c: c, header: func(header http.Header) {
		header.Set("Content-Type", "application/zip")
		header.Set("Content-Disposition", `attachment; filename="user-export.zip"`)
	}}
	return h.Transfer.ExportUser(c.Request.Context(), scopeOf(c), in, out)
}
