package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"bobbin/app/core"
)

// AppendMessage puts a message into the log of a session without running the agent.
// Of the message, Role, Content, ToolCalls, ToolCallID, ToolName, Author, Source,
// ClientMessageID, Metadata and CreatedAt are sent.
func (c *Client) AppendMessage(ctx context.Context, id core.SessionID, m core.Message) (core.Message, error) {
	var at *time.Time
	if !m.CreatedAt.IsZero() {
		at = &m.CreatedAt
	}
	stored, err := call[struct {
		Message core.Message `json:"message"`
	}](ctx, c, post(sessionPath(id, "/messages"), struct {
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
	}{false, m.Role, m.Content, m.ToolCalls, m.ToolCallID, m.ToolName, m.Author, m.Source, m.ClientMessageID, m.Metadata, at}))
	return stored.Message, err
}

// ImportMessages puts a history at the end of a session, the whole of it or
// nothing. A body that can be read again (a bytes.Reader, or one with a method
// Again() io.Reader) survives a server that was restarted meanwhile.
func (c *Client) ImportMessages(ctx context.Context, in core.ImportMessages) (core.Imported, error) {
	r := post(sessionPath(in.SessionID, "/messages/import"), in.Body)
	if in.Source != "" {
		r.query = url.Values{"source": {string(in.Source)}}
	}
	r.header = map[string]string{"Content-Type": "application/json"}
	if in.Format == core.ImportLines {
		r.header["Content-Type"] = "application/jsonl"
	}
	return call[core.Imported](ctx, c, r)
}

// ExportSession writes a session to w as it comes. After an error what was written
// is not whole.
func (c *Client) ExportSession(ctx context.Context, id core.SessionID, format core.ExportFormat, w io.Writer) error {
	r := get(sessionPath(id, "/export"), url.Values{"format": {string(format)}})
	r.header = map[string]string{"Accept": "*/*"}
	response, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("export session: the server answered with status %d", response.StatusCode)
	}
	if _, err := io.Copy(w, response.Body); err != nil {
		return fmt.Errorf("export session: %w", err)
	}
	return nil
}
