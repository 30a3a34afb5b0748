package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"mime/multipart"
	"net/http"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// StartRun calls an operation that starts a run, such as ops.SendMessage, and yields the run's events, up to
// the one that ends it. It reconnects; the message is accepted once and every event is yielded once. It
// generates a client_message_id if there is none. Leaving the loop does not stop the run: ops.CancelRun
// does. The first error ends the sequence.
func (c *Client) StartRun(ctx context.Context, op ops.Operation, in any) iter.Seq2[core.Event, error] {
	r, body := NewRequest(op, in), map[string]any{"client_message_id": core.NewID[string]()}
	if given, ok := r.Body.(map[string]any); ok {
		maps.Copy(body, given)
	}
	r.Body = body
	return c.runStream("", r).allEvents(ctx, 0)
}

// UploadBlob uploads an image or a file; messages refer to it by core.Blob.Part.
func (c *Client) UploadBlob(ctx context.Context, u core.Upload) (core.Blob, error) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, value := range map[string]string{"session_id": string(u.SessionID), "user_id": u.User} {
		if value != "" {
			_ = form.WriteField(name, value) // a buffer cannot fail
		}
	}
	file, _ := form.CreateFormFile("file", u.Name)
	_, _ = file.Write(u.Data)
	_ = form.Close()
	r := NewRequest(ops.UploadFile.Operation, struct{}{})
	r.Body, r.Header["Content-Type"] = &body, form.FormDataContentType()
	var blob core.Blob
	err := c.callJSON(ctx, r, &blob)
	return blob, err
}

// ImportMessages appends a history to a session, all of it or nothing. If the server restarts
// meanwhile, the request is repeated if its body can be read again, such as a bytes.Reader.
func (c *Client) ImportMessages(ctx context.Context, in core.ImportMessages) (core.Imported, error) {
	r := NewRequest(ops.ImportMessages.Operation, ops.Import{InSession: ops.InSession{SessionID: in.SessionID}, Source: in.Source})
	r.Body = in.Body
	if in.Format == core.ImportLines {
		r.Header["Content-Type"] = "application/jsonl"
	}
	var done core.Imported
	err := c.callJSON(ctx, r, &done)
	return done, err
}

// Download calls an operation that answers with a file, and streams it to w. After an error the
// written data is incomplete.
func Download[In any](ctx context.Context, c *Client, op ops.Op[In, ops.Nothing], in In, w io.Writer) error {
	r := NewRequest(op.Operation, in)
	r.Header["Accept"] = "*/*"
	response, err := c.Do(ctx, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("download: the server answered with status %d", response.StatusCode)
	}
	if _, err := io.Copy(w, response.Body); err != nil {
		return fmt.Errorf("download: %w", err)
	}
	return nil
}
