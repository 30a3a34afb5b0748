package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"bobbin/app/core"
)

// sessionPath returns the path of a session, with what follows it.
func sessionPath(id core.SessionID, rest string) string {
	return "/api/v1/sessions/" + url.PathEscape(string(id)) + rest
}

// pageQuery returns the parameters of a page, and others that are not empty.
func pageQuery(p core.PageQuery, others ...string) url.Values {
	q := url.Values{}
	if p.Limit != 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	for i := 0; i+1 < len(others); i += 2 {
		if others[i+1] != "" {
			q.Set(others[i], others[i+1])
		}
	}
	if p.Cursor != "" {
		q.Set("cursor", p.Cursor)
	}
	return q
}

// CreateSession makes a session of the fields that a caller may choose: Agent,
// Model, Title, UserID, Source, Timezone, Instructions, Metadata, Webhook.
func (c *Client) CreateSession(ctx context.Context, s core.Session) (core.Session, error) {
	return call[core.Session](ctx, c, post("/api/v1/sessions", struct {
		Agent        string          `json:"agent,omitempty"`
		Model        string          `json:"model,omitempty"`
		Title        string          `json:"title,omitempty"`
		UserID       string          `json:"user_id,omitempty"`
		Timezone     string          `json:"timezone,omitempty"`
		Instructions string          `json:"instructions,omitempty"`
		Source       core.Source     `json:"source,omitempty"`
		Metadata     json.RawMessage `json:"metadata,omitempty"`
		Webhook      *webhook        `json:"webhook,omitempty"`
	}{s.Agent, s.Model, s.Title, s.UserID, s.Timezone, s.Instructions, s.Source, s.Metadata, webhookOf(s.Webhook)}))
}

// Session returns one session.
func (c *Client) Session(ctx context.Context, id core.SessionID) (core.Session, error) {
	return call[core.Session](ctx, c, get(sessionPath(id, ""), nil))
}

// Sessions returns a page of sessions, newest activity first.
func (c *Client) Sessions(ctx context.Context, q core.SessionQuery) (core.Page[core.Session], error) {
	archived := ""
	if q.Archived {
		archived = "true"
	}
	return call[core.Page[core.Session]](ctx, c, get("/api/v1/sessions", pageQuery(q.PageQuery, "agent", q.Agent, "user_id", q.UserID, "q", q.Text, "archived", archived)))
}

// UpdateSession changes what is not nil.
func (c *Client) UpdateSession(ctx context.Context, id core.SessionID, p core.SessionPatch) (core.Session, error) {
	r := post(sessionPath(id, ""), struct {
		Title        *string         `json:"title,omitempty"`
		Agent        *string         `json:"agent,omitempty"`
		Model        *string         `json:"model,omitempty"`
		Timezone     *string         `json:"timezone,omitempty"`
		Instructions *string         `json:"instructions,omitempty"`
		Metadata     json.RawMessage `json:"metadata,omitempty"`
		Webhook      *webhook        `json:"webhook,omitempty"`
	}{p.Title, p.Agent, p.Model, p.Timezone, p.Instructions, p.Metadata, webhookOf(p.Webhook)})
	r.method = http.MethodPatch
	return call[core.Session](ctx, c, r)
}

// ArchiveSession takes a session out of the lists; its messages stay.
func (c *Client) ArchiveSession(ctx context.Context, id core.SessionID) error {
	r := get(sessionPath(id, ""), nil)
	r.method = http.MethodDelete
	_, err := call[struct{}](ctx, c, r)
	return err
}
