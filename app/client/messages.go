package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"mime/multipart"
	"net/http"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// messageRequest returns the request that sends a message, or a new version of the message that it
// edits.
func messageRequest(m core.SendMessage) Request {
	in := ops.NewMessage{
		InSession: ops.InSession{SessionID: m.SessionID}, Content: m.Content, ClientMessageID: m.ClientMessageID, Model: m.Model, Multitask: m.Multitask,
		UserID: m.User, Author: m.Author, Source: m.Source, Metadata: m.Metadata, Options: m.Options, After: m.After,
	}
	if m.Webhook != nil {
		in.Webhook = &ops.NewWebhook{URL: string(m.Webhook.URL), Secret: m.Webhook.Secret}
	}
	if m.Parts != nil { // an empty list removes all
		in.Parts = []ops.FilePart{}
	}
	for _, p := range m.Parts {
		in.Parts = append(in.Parts, ops.FilePart{Type: p.Type, BlobID: p.BlobID, Name: p.Name})
	}
	if m.Edits != "" {
		return NewRequest(ops.EditMessage.Operation, ops.EditedMessage{NewMessage: in, MessageID: m.Edits})
	}
	return NewRequest(ops.SendMessage.Operation, in)
}

// Send sends a message, or a new version of a message that it edits, and yields the events of
// its run, up to the one that ends it. It reconnects; the message is accepted once and every
// event is yielded once. It generates a ClientMessageID if there is none. Leaving the loop
// does not stop the run: ops.CancelRun does. The first error ends the sequence.
func (c *Client) Send(ctx context.Context, m core.SendMessage) iter.Seq2[core.Event, error] {
	if m.ClientMessageID == "" {
		m.ClientMessageID = core.NewID[string]()
	}
	return c.runStream("", messageRequest(m)).allEvents(ctx, 0)
}

// Regenerate regenerates the answer to a message and yields the events of the run, like Send.
func (c *Client) Regenerate(ctx context.Context, in ops.Regenerate) iter.Seq2[core.Event, error] {
	if in.ClientMessageID == "" {
		in.ClientMessageID = core.NewID[string]()
	}
	return c.runStream("", NewRequest(ops.RegenerateMessage.Operation, in)).allEvents(ctx, 0)
}

// SendAndWait sends a message and returns when its run has ended, or after the server's time
// limit with the current state of the run.
func (c *Client) SendAndWait(ctx context.Context, m core.SendMessage) (answer ops.RunAnswer, err error) {
	err = c.callJSON(ctx, messageRequest(m), &answer)
	return answer, err
}

// SendAsync sends a message and returns its run immediately.
func (c *Client) SendAsync(ctx context.Context, m core.SendMessage) (core.Run, error) {
	r := messageRequest(m)
	r.Header["Prefer"] = "respond-async"
	var answer ops.RunAnswer
	err := c.callJSON(ctx, r, &answer)
	return answer.Run, err
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
