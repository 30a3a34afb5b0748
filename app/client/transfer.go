package client

import (
	"context"
	"encoding/json"
	"io"
	"net/url"
	"time"

	"bobbin/app/core"
)

// AppendMessage appends a message to a session without running the agent. It sends the fields
// Role, Content, ToolCalls, ToolCallID, ToolName, Author, AuthorID, Source, ClientMessageID,
// Metadata and CreatedAt.
func (c *Client) AppendMessage(ctx context.Context, id core.SessionID, m core.Message) (core.Message, error) {
	var at *time.Time
	if !m.CreatedAt.IsZero() {
		at = &m.CreatedAt
	}
	stored, err := callJSON[struct {
		Message core.Message `json:"message"`
	}](ctx, c, postRequest(sessionPath(id, "/messages"), struct {
		Run             bool            `json:"run"`
		Role            core.Role       `json:"role,omitempty"`
		Content         string          `json:"content"`
		ToolCalls       []core.ToolCall `json:"tool_calls,omitempty"`
		ToolCallID      string          `json:"tool_call_id,omitempty"`
		ToolName        string          `json:"tool_name,omitempty"`
		Author          string          `json:"author,omitempty"`
		Source          core.Source     `json:"source,omitempty"`
		ClientMessageID string          `json:"client_message_id,omitempty"`
		Metadata        json.RawMessage `json:"metadata,omitempty"`
		CreatedAt       *time.Time      `json:"created_at,omitempty"`
		AuthorID        string          `json:"author_id,omitempty"`
	}{false, m.Role, m.Content, m.ToolCalls, m.ToolCallID, m.ToolName, m.Author, m.Source, m.ClientMessageID, m.Metadata, at, m.AuthorID}))
	return stored.Message, err
}

// ImportMessages appends a history to a session, all of it or nothing. If the server restarts
// meanwhile, the request is repeated if its body can be read again, such as a bytes.Reader.
func (c *Client) ImportMessages(ctx context.Context, in core.ImportMessages) (core.Imported, error) {
	r := postRequest(sessionPath(in.SessionID, "/messages/import"), in.Body)
	if in.Source != "" {
		r.query = url.Values{"source": {string(in.Source)}}
	}
	r.header = map[string]string{"Content-Type": "application/json"}
	if in.Format == core.ImportLines {
		r.header["Content-Type"] = "application/jsonl"
	}
	return callJSON[core.Imported](ctx, c, r)
}

// ExportSession streams a session to w. After an error the written data is incomplete.
func (c *Client) ExportSession(ctx context.Context, id core.SessionID, format core.ExportFormat, w io.Writer) error {
	return c.downloadTo(ctx, getRequest(sessionPath(id, "/export"), url.Values{"format": {string(format)}}), w)
}
