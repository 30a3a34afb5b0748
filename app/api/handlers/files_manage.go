package handlers

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// List answers a page of files, newest first.
func (h *Files) List(c *gin.Context) error {
	q := readQuery(c, "session_id", "user_id", "limit", "cursor")
	query := core.BlobQuery{PageQuery: q.pageParams(), SessionID: core.SessionID(q.textParam("session_id"))}
	if err := q.err(); err != nil {
		return err
	}
	tenant, err := userScope(c, q.textParam("user_id"))
	if err != nil {
		return err
	}
	if query.SessionID != "" {
		if _, err := h.sessions.Get(c.Request.Context(), scopeOf(c), query.SessionID); err != nil {
			return err
		}
	}
	page, err := h.blobs.List(c.Request.Context(), tenant, query)
	if err != nil {
		return err
	}
	return writePage(c, page)
}

// Describe answers the metadata of a file.
func (h *Files) Describe(c *gin.Context) error {
	id := core.BlobID(c.Param("id"))
	blob, err := h.blobs.Get(c.Request.Context(), scopeOf(c), id)
	return respond(c, http.StatusOK, blob, err)
}

// Delete permanently removes a file, also from messages that refer to it: 204.
func (h *Files) Delete(c *gin.Context) error {
	id := core.BlobID(c.Param("id"))
	return noContent(c, h.blobs.Delete(c.Request.Context(), scopeOf(c), id))
}

// Link answers a temporary URL for browsers.
func (h *Files) Link(c *gin.Context) error {
	id := core.BlobID(c.Param("id"))
	body, err := readBody[struct {
		ExpiresIn int `json:"expires_in"` // seconds
	}](c)
	if err != nil {
		return err
	}
	if body.ExpiresIn < 0 || body.ExpiresIn > math.MaxInt32 {
		return invalidError([]core.FieldError{{Field: "expires_in", Detail: "is out of range"}})
	}
	link, err := h.files.Link(c.Request.Context(), scopeOf(c), id, time.Duration(body.ExpiresIn)*time.Second)
	return respond(c, http.StatusOK, link, err)
}

// Follow checks a link and makes the file's owner the caller of the request, which has no key.
func (h *Files) Follow(c *gin.Context) error {
	q := readQuery(c, "expires", "signature")
	expires := q.numberParam("expires")
	if err := q.err(); err != nil {
		return err
	}
	id := core.BlobID(c.Param("id"))
	ctx := c.Request.Context()
	blob, err := h.files.Follow(ctx, id, expires, q.textParam("signature"))
	if err != nil {
		return err
	}
	c.Request = c.Request.WithContext(core.WithIdentity(ctx, core.Identity{Owner: blob.Owner, User: blob.UserID}))
	return nil
}

// Content answers the file of a link. Images that cannot contain scripts are shown in
// pages, also of other sites; all other files are downloads.
func (h *Files) Content(c *gin.Context) error {
	id := core.BlobID(c.Param("id"))
	blob, err := h.blobs.Get(c.Request.Context(), scopeOf(c), id)
	if err != nil {
		return err
	}
	disposition := "attachment"
	if isPicture(blob.MediaType) {
		disposition = "inline"
	}
	expires, _ := strconv.ParseInt(c.Query("expires"), 10, 64)
	left := max(time.Until(time.Unix(expires, 0)), 0)
	c.Header("Cache-Control", fmt.Sprintf("private, max-age=%d, immutable", int(left.Seconds())))
	c.Header("Cross-Origin-Resource-Policy", "cross-origin")
	return h.serveBlob(c, id, disposition)
}

// isPicture reports whether a file is an image without scripts. SVG counts as text.
func isPicture(mediaType string) bool {
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	default:
		return false
	}
}
