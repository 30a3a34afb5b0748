package client

import (
	"bytes"
	"context"
	"fmt"
	"mime/multipart"
	"net/url"

	"bobbin/app/core"
)

// blobPart is an image or a file of a message in a request.
type blobPart struct {
	Type   string      `json:"type,omitempty"`
	BlobID core.BlobID `json:"blob_id"`
	Name   string      `json:"name,omitempty"`
}

// blobParts converts parts for a request; nil stays nil, which keeps the files of an edited
// message.
func blobParts(parts []core.Part) *[]blobPart {
	if parts == nil {
		return nil
	}
	list := make([]blobPart, 0, len(parts))
	for _, p := range parts {
		list = append(list, blobPart{p.Type, p.BlobID, p.Name})
	}
	return &list
}

// UploadBlob uploads an image or a file; messages refer to it by core.Blob.Part.
func (c *Client) UploadBlob(ctx context.Context, u core.Upload) (core.Blob, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, value := range map[string]string{"session_id": string(u.SessionID), "user_id": u.User} {
		if value == "" {
			continue
		}
		if err := form.WriteField(name, value); err != nil {
			return core.Blob{}, fmt.Errorf("create form: %w", err)
		}
	}
	file, err := form.CreateFormFile("file", u.Name)
	if err == nil {
		_, err = file.Write(u.Data)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		return core.Blob{}, fmt.Errorf("create form: %w", err)
	}
	r := postRequest("/api/v1/blobs", bytes.NewReader(body.Bytes()))
	r.header = map[string]string{"Content-Type": form.FormDataContentType()}
	return callJSON[core.Blob](ctx, c, r)
}

// Blob returns the content of an image or a file.
func (c *Client) Blob(ctx context.Context, id core.BlobID) ([]byte, error) {
	return c.sendAndRead(ctx, getRequest(blobPath(id), nil))
}

// blobPath returns the path of a file.
func blobPath(id core.BlobID) string { return "/api/v1/blobs/" + url.PathEscape(string(id)) }

// Blobs returns a page of files, newest first.
func (c *Client) Blobs(ctx context.Context, q core.BlobQuery) (core.Page[core.Blob], error) {
	return callJSON[core.Page[core.Blob]](ctx, c, getRequest("/api/v1/blobs", pageQuery(q.PageQuery, "session_id", string(q.SessionID), "user_id", q.UserID)))
}
