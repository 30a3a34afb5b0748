package handlers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// maxFieldBytes bounds a form field other than the message.
const maxFieldBytes = 1 << 10

// uploadFile stores the form's one file: 201.
func (h Native) uploadFile(c *gin.Context) error {
	if err := readParams(c, &struct{}{}); err != nil {
		return err
	}
	if !isForm(c.Request) {
		return &core.Error{Kind: core.ErrInvalid, Code: CodeMediaType, Message: "the body must be a form with the field file: Content-Type: multipart/form-data"}
	}
	u, given := core.Upload{}, false
	each, _ := h.Files.MaxBytes()
	err := h.readForm(c, []string{"file", "session_id", "user_id"}, func(p *multipart.Part, size int64) (err error) {
		var field []byte
		switch p.FormName() {
		case "session_id":
			field, err = readPart(p, maxFieldBytes, size)
			u.SessionID = core.SessionID(field)
		case "user_id":
			field, err = readPart(p, maxFieldBytes, size)
			u.User = string(field)
		case "file":
			if given {
				return core.OneFault("file", "is given more than once; upload files one at a time")
			}
			given = true
			u.Name = p.FileName()
			u.Data, err = readPart(p, each, size)
		}
		return err
	})
	if err != nil {
		return err
	}
	if !given {
		return core.OneFault("file", "is missing")
	}
	blob, err := h.Files.Upload(c.Request.Context(), scopeOf(c), u)
	if err != nil {
		return err
	}
	c.Header("Location", "/api/v1/blobs/"+string(blob.ID))
	return writeJSON(c, http.StatusCreated, blob)
}

// serveBlob answers the content of a blob, from a temporary file: a slow reader holds no memory.
func (h Native) serveBlob(c *gin.Context, blob core.Blob, disposition string) error {
	if err := ReserveMemory(c, max(blob.Size, AnswerBytes)); err != nil {
		return err
	}
	blob, data, err := h.Blobs.Open(c.Request.Context(), scopeOf(c), blob.ID)
	if err != nil {
		return err
	}
	content, err := spool(c, bytes.NewReader(data))
	HoldOf(c).Release()
	if err != nil {
		return err
	}
	defer content.Close()
	c.Status(http.StatusOK)
	header := c.Writer.Header()
	media := blob.MediaType
	if strings.HasPrefix(media, "text/") {
		if media != "text/csv" { // all other text is plain
			media = "text/plain"
		}
		media += "; charset=utf-8"
	}
	header.Set("Content-Type", media)
	header.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": blob.Name}))
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	header.Set("ETag", `"`+blob.SHA256+`"`)
	http.ServeContent(newPacedWriter(c), c.Request, "", blob.CreatedAt, content)
	return nil
}

// readFormMessage reads a message sent as a form: the field message holds the JSON body,
// each field file an attached file. Files are stored as they arrive, so that only one of
// them is in memory.
func (h Native) readFormMessage(c *gin.Context, body *ops.NewMessage) error {
	var parts []ops.FilePart
	defer HoldOf(c).Release() // the run may take long
	given := false
	content := sha256.New() // its borders are of this request alone
	defer func() { hashRequest(c, content.Sum(nil)) }()
	each, maxFiles := h.Files.MaxBytes()
	err := h.readForm(c, []string{"message", "file"}, func(p *multipart.Part, size int64) error {
		switch p.FormName() {
		case "message":
			if given {
				return core.OneFault("message", "is given more than once")
			}
			given = true
			data, err := readPart(p, h.Space.Body, size)
			if err != nil {
				return err
			}
			fmt.Fprintf(content, "message %x\n", sha256.Sum256(data))
			return Decode(data, body)
		case "file":
			if len(parts) >= maxFiles {
				return core.Errorf(core.ErrInvalid, "the message has too many files: at most %d are allowed", maxFiles)
			}
			data, err := readPart(p, each, size)
			if err != nil {
				return err
			}
			fmt.Fprintf(content, "file %q %x\n", p.FileName(), sha256.Sum256(data))
			blob, err := h.Files.Upload(c.Request.Context(), scopeOf(c), core.Upload{SessionID: body.SessionID, Name: p.FileName(), Data: data})
			parts = append(parts, ops.FilePart{BlobID: blob.ID})
			return err
		}
		return nil
	})
	body.Parts = append(body.Parts, parts...)
	return err
}

// partsOf returns the parts as core.Parts; nil stays nil.
func partsOf(given []ops.FilePart) []core.Part {
	if given == nil {
		return nil
	}
	parts := make([]core.Part, 0, len(given))
	for _, p := range given {
		parts = append(parts, core.Part{Type: p.Type, BlobID: p.BlobID, Name: p.Name})
	}
	return parts
}

func isForm(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && media == "multipart/form-data"
}

// readForm reads a whole form into a temporary file, waits for the memory to process it, and calls handle
// for each part, whose names are known, with the size of the form, until the first error.
func (h Native) readForm(c *gin.Context, known []string, handle func(p *multipart.Part, size int64) error) error {
	form, err := spool(c, c.Request.Body)
	if err != nil {
		return err
	}
	defer form.Close()
	c.Request.Body = form
	each, _ := h.Files.MaxBytes()
	if err := ReserveMemory(c, min(form.size, each+h.Space.Body)); err != nil {
		return err
	}
	parts, err := c.Request.MultipartReader()
	if err != nil {
		return malformedError("the form cannot be read: %s", err)
	}
	for {
		part, err := parts.NextPart()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return BodyError(err)
		case !slices.Contains(known, part.FormName()):
			return invalidError([]core.FieldError{unknownName(part.FormName(), "field", known)})
		}
		if err := handle(part, form.size); err != nil {
			return err
		}
	}
}

// readPart reads a part of at most maxBytes from a form of formSize bytes.
func readPart(p *multipart.Part, maxBytes, formSize int64) ([]byte, error) {
	data, err := readAll(io.LimitReader(p, maxBytes+1), min(maxBytes, formSize))
	switch {
	case err != nil:
		return nil, BodyError(err)
	case int64(len(data)) <= maxBytes:
		return data, nil
	case p.FileName() == "":
		return nil, core.Errorf(core.ErrTooLarge, "the field %s is larger than %d bytes", core.Clip(p.FormName(), maxShown), maxBytes)
	default:
		return nil, core.Errorf(core.ErrTooLarge, "the file %s is too large: the maximum is %s", core.Clip(p.FileName(), maxShown), core.ByteSize(maxBytes))
	}
}

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
		blob, err := h.Blobs.Get(c.Request.Context(), scopeOf(c), in.BlobID)
		if err != nil {
			return err
		}
		c.Header("Cache-Control", "private, no-cache") // it never changes, but access does
		return h.serveBlob(c, blob, "attachment")      // browsers do not render it in our origin
	})
	bind(r, ops.DescribeFile, func(ctx context.Context, tenant core.Tenant, in ops.InBlob) (core.Blob, error) {
		return h.Blobs.Get(ctx, tenant, in.BlobID)
	})
	bind(r, ops.LinkFile, func(ctx context.Context, tenant core.Tenant, in ops.NewBlobLink) (core.BlobLink, error) {
		if in.ExpiresIn < 0 {
			return core.BlobLink{}, core.OneFault("expires_in", "is out of range")
		}
		return h.Files.Link(ctx, tenant, in.BlobID, time.Duration(in.ExpiresIn)*time.Second)
	})
	bindDone(r, ops.DeleteFile, func(ctx context.Context, tenant core.Tenant, in ops.InBlob) error {
		return h.Blobs.Delete(ctx, tenant, in.BlobID) // also from messages that refer to it
	})
}

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
	blob, err := h.Blobs.Get(c.Request.Context(), scopeOf(c), core.BlobID(c.Param("id")))
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
	return h.serveBlob(c, blob, disposition)
}
