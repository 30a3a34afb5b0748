package client

import (
	"bytes"
	"context"
	"fmt"
	"mime/multipart"
	"net/url"

	"bobbin/app/core"
)

// blobPart is an image or a file of a message, as the server takes it.
type blobPart struct {
	Type   string      `json:"type,omitempty"`
	BlobID core.BlobID `json:"blob_id"`
	Name   string      `json:"name,omitempty"`
}

// blobParts returns the parts as they are sent; nil stays nil, which leaves an
// edited message the files that it had.
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

// UploadBlob uploads an image or a file; core.Blob.Part is what a message refers to
// it by.
func (c *Client) UploadBlob(ctx context.Context, u core.Upload) (core.Blob, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, value := range map[string]string{"session_id": string(u.SessionID), "user_id": u.User} {
		if value == "" {
			continue
		}
		if err := form.WriteField(name, value); err != nil {
			return core.Blob{}, fmt.Errorf("make form: %w", err)
		}
	}
	if err := addFile(form, u); err != nil {
		return core.Blob{}, err
	}
	r := post("/api/v1/blobs", bytes.NewReader(body.Bytes()))
	r.header = map[string]string{"Content-Type": form.FormDataContentType()}
	return call[core.Blob](ctx, c, r)
}

// addFile puts a file into the form, and ends it.
func addFile(form *multipart.Writer, u core.Upload) error {
	file, err := form.CreateFormFile("file", u.Name)
	if err == nil {
		_, err = file.Write(u.Data)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		return fmt.Errorf("make form: %w", err)
	}
	return nil
}

// Blob returns the content of an image or a file.
func (c *Client) Blob(ctx context.Context, id core.BlobID) ([]byte, error) {
	response, err := c.send(ctx, get("/api/v1/blobs/"+url.PathEscape(string(id)), nil))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return readAnswer(response)
}
