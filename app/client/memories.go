package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"bobbin/app/core"
)

// memoryPath returns the path of a memory.
func memoryPath(id core.MemoryID) string { return "/api/v1/memories/" + url.PathEscape(string(id)) }

// userQuery narrows a request to one user; "" = none in particular.
func userQuery(user string) url.Values { return pageQuery(core.PageQuery{}, "user_id", user) }

// CreateMemory stores a memory of UserID, Content and Metadata. Its notice says why
// search does not find it yet; empty = it does.
func (c *Client) CreateMemory(ctx context.Context, m core.Memory) (core.SavedMemory, error) {
	return call[core.SavedMemory](ctx, c, post("/api/v1/memories", struct {
		UserID   string          `json:"user_id,omitempty"`
		Content  string          `json:"content"`
		Metadata json.RawMessage `json:"metadata,omitempty"`
	}{m.UserID, m.Content, m.Metadata}))
}

// Memory returns one memory, if it is the user's ("" = any user's).
func (c *Client) Memory(ctx context.Context, user string, id core.MemoryID) (core.Memory, error) {
	return call[core.Memory](ctx, c, get(memoryPath(id), userQuery(user)))
}

// Memories returns a page of a user's memories ("" = all users'), the newest first.
func (c *Client) Memories(ctx context.Context, user string, q core.PageQuery) (core.Page[core.Memory], error) {
	return call[core.Page[core.Memory]](ctx, c, get("/api/v1/memories", pageQuery(q, "user_id", user)))
}

// UpdateMemory replaces Content and Metadata of the memory that m names by its ID,
// if it is the user's ("" = any user's).
func (c *Client) UpdateMemory(ctx context.Context, user string, m core.Memory) (core.SavedMemory, error) {
	r := post(memoryPath(m.ID), struct {
		Content  string          `json:"content"`
		Metadata json.RawMessage `json:"metadata,omitempty"`
	}{m.Content, m.Metadata})
	r.method, r.query = http.MethodPut, userQuery(user)
	return call[core.SavedMemory](ctx, c, r)
}

// DeleteMemory removes a memory for good, if it is the user's ("" = any user's).
func (c *Client) DeleteMemory(ctx context.Context, user string, id core.MemoryID) error {
	r := get(memoryPath(id), userQuery(user))
	r.method = http.MethodDelete
	_, err := call[struct{}](ctx, c, r)
	return err
}

// SearchMemories returns the memories of a user ("" = of all) that are nearest to
// a text.
func (c *Client) SearchMemories(ctx context.Context, user string, q core.MemorySearch) (core.MemoryMatches, error) {
	return call[core.MemoryMatches](ctx, c, post("/api/v1/memories/search", struct {
		Query    string   `json:"query"`
		UserID   string   `json:"user_id,omitempty"`
		Limit    int      `json:"limit,omitempty"`
		MinScore *float32 `json:"min_score,omitempty"`
	}{q.Query, user, q.Limit, q.MinScore}))
}

// ReindexMemories embeds one batch of stale memories.
func (c *Client) ReindexMemories(ctx context.Context, q core.Reindex) (core.Reindexed, error) {
	return call[core.Reindexed](ctx, c, post("/api/v1/memories/reindex", struct {
		AllOwners bool   `json:"all_owners,omitempty"`
		Cursor    string `json:"cursor,omitempty"`
		Limit     int    `json:"limit,omitempty"`
	}{q.AllOwners, q.Cursor, q.Limit}))
}
