package handlers

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// DataRights answers /api/v1/deletions and /api/v1/export: deletion and export of a
// user's data, by the user or by the owner.
type DataRights struct {
	deletions deletionService
	transfer  transferService
}

// NewDataRights returns the handlers of deletions and of exports of users.
func NewDataRights(s Services) *DataRights {
	return &DataRights{deletions: s.Deletions, transfer: s.Transfer}
}

// maxUserID bounds a user's id, in bytes, as everywhere.
const maxUserID = 200

// Delete accepts the deletion of a session or of a user: 202, or 200 if it is complete. It
// may be repeated.
func (h *DataRights) Delete(c *gin.Context) error {
	body, err := readBody[struct {
		SessionID  core.SessionID `json:"session_id"`
		UserID     string         `json:"user_id"`
		SlackPosts bool           `json:"slack_posts"`
	}](c)
	if err != nil {
		return err
	}
	var d core.Deletion
	switch ctx, tenant := c.Request.Context(), scopeOf(c); {
	case (body.SessionID == "") == (body.UserID == ""):
		return invalidError([]core.FieldError{{Field: "session_id", Detail: "is missing: give session_id or user_id, not both"}})
	case body.SessionID != "":
		d, err = h.deletions.Session(ctx, tenant, body.SessionID, body.SlackPosts)
	default:
		if err := checkNamedUser(c, body.UserID); err != nil {
			return err
		}
		d, err = h.deletions.User(ctx, tenant, body.UserID, body.SlackPosts)
	}
	if err != nil {
		return err
	}
	c.Header("Location", "/api/v1/deletions/"+string(d.ID))
	status := http.StatusAccepted
	if d.Status == core.DeletionSucceeded {
		status = http.StatusOK
	}
	return writeJSON(c, status, d)
}

// Get answers the progress of a deletion.
func (h *DataRights) Get(c *gin.Context) error {
	id := core.DeletionID(c.Param("id"))
	d, err := h.deletions.Get(c.Request.Context(), scopeOf(c), id)
	return respond(c, http.StatusOK, d, err)
}

// checkNamedUser refuses invalid user ids, and other users than the end user who asks.
func checkNamedUser(c *gin.Context, user string) error {
	if len(user) > maxUserID || core.CleanText(user) != user {
		return invalidError([]core.FieldError{{Field: "user_id", Detail: fmt.Sprintf("must be at most %d bytes of text", maxUserID)}})
	}
	return checkUser(c, user)
}

// Export sends all data of a user as a file. An error in the middle breaks the connection,
// so that a partial file is not mistaken for a complete one.
func (h *DataRights) Export(c *gin.Context) error {
	tenant := scopeOf(c)
	q := readQuery(c, "user_id")
	user, err := userParam(c, q, tenant.User)
	if err != nil {
		return err
	}
	return h.exportUser(c, core.UserExport{Owner: tenant.Owner, User: user, OwnersView: tenant.User == ""})
}

// ExportAny is Export for the command line, which names the owner.
func (h *DataRights) ExportAny(c *gin.Context) error {
	q := readQuery(c, "user_id", "owner")
	owner := q.textParam("owner")
	if owner == "" {
		q.faults.Add("owner", "is missing: name the owner")
	}
	user, err := userParam(c, q, "")
	if err != nil {
		return err
	}
	return h.exportUser(c, core.UserExport{Owner: owner, User: user, OwnersView: true})
}

// userParam returns the user in the query, or else the default.
func userParam(c *gin.Context, q *query, fallback string) (string, error) {
	user := cmp.Or(q.textParam("user_id"), fallback)
	if user == "" {
		q.faults.Add("user_id", "is missing: name the user")
	}
	if err := q.err(); err != nil {
		return "", err
	}
	return user, checkNamedUser(c, user)
}

func (h *DataRights) exportUser(c *gin.Context, in core.UserExport) error {
	out := &fileWriter{c: c, header: func(header http.Header) {
		header.Set("Content-Type", "application/zip")
		header.Set("Content-Disposition", `attachment; filename="user-export.zip"`)
	}}
	return h.transfer.ExportUser(c.Request.Context(), scopeOf(c), in, out)
}
