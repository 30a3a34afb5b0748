package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"bobbin/app/core"
)

// sessionPath returns the path of a session, followed by rest.
func sessionPath(id core.SessionID, rest string) string {
	return "/api/v1/sessions/" + url.PathEscape(string(id)) + rest
}

// pageQuery returns the parameters of a page, and the others that are not empty.
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

// CreateSession creates a session with the fields that a caller may set: Agent, Model, Title,
// UserID, Source, Timezone, Instructions, Metadata, Pinned, Tags, Webhook, Temporary.
func (c *Client) CreateSession(ctx context.Context, s core.Session) (core.Session, error) {
	return callJSON[core.Session](ctx, c, postRequest("/api/v1/sessions", struct {
		Agent        string          `json:"agent,omitempty"`
		Model        string          `json:"model,omitempty"`
		Title        string          `json:"title,omitempty"`
		UserID       string          `json:"user_id,omitempty"`
		Timezone     string          `json:"timezone,omitempty"`
		Instructions string          `json:"instructions,omitempty"`
		Source       core.Source     `json:"source,omitempty"`
		Metadata     json.RawMessage `json:"metadata,omitempty"`
		Pinned       bool            `json:"pinned,omitempty"`
		Tags         []string        `json:"tags,omitempty"`
		Webhook      *webhook        `json:"webhook,omitempty"`
		Temporary    bool            `json:"temporary,omitempty"`
	}{s.Agent, s.Model, s.Title, s.UserID, s.Timezone, s.Instructions, s.Source, s.Metadata, s.Pinned, s.Tags, webhookOf(s.Webhook), s.Temporary}))
}

// Session returns one session.
func (c *Client) Session(ctx context.Context, id core.SessionID) (core.Session, error) {
	return callJSON[core.Session](ctx, c, getRequest(sessionPath(id, ""), nil))
}

// Sessions returns a page of sessions, most recent activity first.
func (c *Client) Sessions(ctx context.Context, q core.SessionQuery) (core.Page[core.Session], error) {
	yes := map[bool]string{true: "true"}
	pinned := ""
	if q.Pinned != nil {
		pinned = strconv.FormatBool(*q.Pinned)
	}
	in, include := "", ""
	if q.TitlesOnly {
		in = "title"
	}
	if q.Summaries {
		include = "summary"
	}
	return callJSON[core.Page[core.Session]](ctx, c, getRequest("/api/v1/sessions", pageQuery(q.PageQuery,
		"agent", q.Agent, "user_id", q.UserID, "q", q.Text, "in", in, "archived", yes[q.Archived], "order", string(q.Order), "include", include,
		"status", string(q.Status), "pinned", pinned, "tag", q.Tag, "metadata", string(q.Metadata),
		"created_after", formatTime(q.CreatedAfter), "created_before", formatTime(q.CreatedBefore),
		"updated_after", formatTime(q.UpdatedAfter), "updated_before", formatTime(q.UpdatedBefore))))
}

// formatTime returns a time as a query parameter, "" for none.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// UpdateSession updates the fields of p that are not nil.
func (c *Client) UpdateSession(ctx context.Context, id core.SessionID, p core.SessionPatch) (core.Session, error) {
	var tags *[]string
	if p.Tags != nil {
		tags = &p.Tags // an empty list removes all
	}
	r := postRequest(sessionPath(id, ""), struct {
		Title        *string         `json:"title,omitempty"`
		Agent        *string         `json:"agent,omitempty"`
		Model        *string         `json:"model,omitempty"`
		Timezone     *string         `json:"timezone,omitempty"`
		Instructions *string         `json:"instructions,omitempty"`
		Metadata     json.RawMessage `json:"metadata,omitempty"`
		Pinned       *bool           `json:"pinned,omitempty"`
		Tags         *[]string       `json:"tags,omitempty"`
		Webhook      *webhook        `json:"webhook,omitempty"`
		Archived     *bool           `json:"archived,omitempty"`
		Force        bool            `json:"force,omitempty"`
	}{p.Title, p.Agent, p.Model, p.Timezone, p.Instructions, p.Metadata, p.Pinned, tags, webhookOf(p.Webhook), p.Archived, p.Force})
	r.method = http.MethodPatch
	return callJSON[core.Session](ctx, c, r)
}

// Usage returns a page of the caller's model usage. Zero times mean the last 30 days.
func (c *Client) Usage(ctx context.Context, q core.UsageQuery) (core.UsageReport, error) {
	return callJSON[core.UsageReport](ctx, c, getRequest("/api/v1/usage", pageQuery(q.PageQuery,
		"group_by", string(q.GroupBy), "from", formatTime(q.From), "to", formatTime(q.To))))
}

// SlackThread returns the thread of Slack that the session is attached to, and what is wrong with
// its posts.
func (c *Client) SlackThread(ctx context.Context, id core.SessionID) (core.SlackThreadStatus, error) {
	return callJSON[core.SlackThreadStatus](ctx, c, getRequest(sessionPath(id, "/slack"), nil))
}
