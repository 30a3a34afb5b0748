package handlers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

func (h Native) registerFiles(r Router) {
	r(ops.UploadFile.Operation, h.uploadFile)
	bind(r, ops.ListFiles, func(ctx context.Context, tenant core.Tenant, in core.BlobQuery) (core.Page[core.Blob], error) {
		tenant, err := userScope(tenant, in.UserID)
		if err == nil && in.SessionID != "" {
			_, err = h.Sessions.Get(ctx, callerOf(ctx).Tenant(), in.SessionID)
		}
		if err != nil {
			return core.Page[core.Blob]{}, err
		}
		return h.Blobs.List(ctx, tenant, core.BlobQuery{SessionID: in.SessionID, PageQuery: in.PageQuery})
	})
	bindRaw(r, ops.GetFile, func(c *gin.Context, in ops.InBlob) error {
		c.Header("Cache-Control", "private, no-cache") // it never changes, but access does
		return h.serveBlob(c, in.BlobID, "attachment") // browsers do not render it in our origin
	})
	bind(r, ops.DescribeFile, func(ctx context.Context, tenant core.Tenant, in ops.InBlob) (core.Blob, error) {
		return h.Blobs.Get(ctx, tenant, in.BlobID)
	})
	bind(r, ops.LinkFile, func(ctx context.Context, tenant core.Tenant, in ops.NewBlobLink) (core.BlobLink, error) {
		if in.ExpiresIn < 0 {
			return core.BlobLink{}, invalidError([]core.FieldError{{Field: "expires_in", Detail: "is out of range"}})
		}
		return h.Files.Link(ctx, tenant, in.BlobID, time.Duration(in.ExpiresIn)*time.Second)
	})
	bindDone(r, ops.DeleteFile, func(ctx context.Context, tenant core.Tenant, in ops.InBlob) error {
		return h.Blobs.Delete(ctx, tenant, in.BlobID) // also from messages that refer to it
	})
}

// fileLink is a link to a file.
type fileLink struct {
	ops.InBlob
	Expires   int64  `query:"expires" min:"0"`
	Signature string `query:"signature"`
}

// Follow checks a link and makes the file's owner the caller of the request, which has no key.
func (h Native) Follow(c *gin.Context) error {
	var in fileLink
	if err := readParams(c, &in); err != nil {
		return err
	}
	ctx := c.Request.Context()
	blob, err := h.Files.Follow(ctx, in.BlobID, in.Expires, in.Signature)
	if err != nil {
		return err
	}
	c.Request = c.Request.WithContext(core.WithIdentity(ctx, core.Identity{Owner: blob.Owner, User: blob.UserID}))
	return nil
}

// Content answers the file of a link. Images that cannot contain scripts are shown in
// pages, also of other sites; all other files are downloads.
func (h Native) Content(c *gin.Context) error {
	id := core.BlobID(c.Param("id"))
	blob, err := h.Blobs.Get(c.Request.Context(), scopeOf(c), id)
	if err != nil {
		return err
	}
	disposition := "attachment"
	if slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, blob.MediaType) { // not SVG
		disposition = "inline"
	}
	expires, _ := strconv.ParseInt(c.Query("expires"), 10, 64)
	left := max(time.Until(time.Unix(expires, 0)), 0)
	c.Header("Cache-Control", fmt.Sprintf("private, max-age=%d, immutable", int(left.Seconds())))
	c.Header("Cross-Origin-Resource-Policy", "cross-origin")
	return h.serveBlob(c, id, disposition)
}
