package client

import (
	"context"
	"encoding/json"
	"net/url"

	"bobbin/app/core"
)

// memoryPath returns the path of a memory.
func memoryPath(id core.MemoryID) string { return "/api/v1/memories/" + url.PathEscape(string(id)) }

// userQuery limits a request to one user; "" = no limit.
func userQuery(user string) url.Values { return pageQuery(core.PageQuery{}, "user_id", user) }

// CreateMemory stores a memory with UserID, Content and Metadata. Its notice says why search
// cannot find it yet; empty = it can.
func (c *Client) CreateMemory(ctx context.Context, m core.Memory) (core.SavedMemory, error) {
	return callJSON[core.SavedMemory](ctx, c, postRequest("/api/v1/memories", struct {
		UserID   string          `json:"user_id,omitempty"`
		Content  string          `json:"content"`
		Metadata json.RawMessage `json:"metadata,omitempty"`
	}{m.UserID, m.Content, m.Metadata}))
}

// Memory returns a memory of the user ("" = of any user).
func (c *Client) Memory(ctx context.Context, user string, id core.MemoryID) (core.Memory, error) {
	return callJSON[core.Memory](ctx, c, getRequest(memoryPath(id), userQuery(user)))
}

// Memories returns a page of the user's memories ("" = all users'), newest first.
func (c *Client) Memories(ctx context.Context, user string, q core.PageQuery) (core.Page[core.Memory], error) {
	return callJSON[core.Page[core.Memory]](ctx, c, getRequest("/api/v1/memories", pageQuery(q, "user_id", user)))
}

// UpdateMemory replaces Content and Metadata of the memory m.ID of the user ("" = of any user).
func (c *Client) UpdateMemory(ctx context.Context, user string, m core.Memory) (core.SavedMemory, error) {
	r := putRequest(memoryPath(m.ID), struct {
		Content  string          `json:"content"`
		Metadata json.RawMessage `json:"metadata,omitempty"`
	}{m.Content, m.Metadata})
	r.query = userQuery(user)
	return callJSON[core.SavedMemory](ctx, c, r)
}

// DeleteMemory permanently deletes a memory of the user ("" = of any user).
func (c *Client) DeleteMemory(ctx context.Context, user string, id core.MemoryID) error {
	return c.sendDelete(ctx, memoryPath(id), userQuery(user))
}

// SearchMemories returns the memories of a user ("" = of all) most similar to a text.
func (c *Client) SearchMemories(ctx context.Context, user string, q core.MemorySearch) (core.MemoryMatches, error) {
	return callJSON[core.MemoryMatches](ctx, c, postRequest("/api/v1/memories/search", struct {
		Query    string   `json:"query"`
		UserID   string   `json:"user_id,omitempty"`
		Limit    int      `json:"limit,omitempty"`
		MinScore *float32 `json:"min_score,omitempty"`
	}{q.Query, user, q.Limit, q.MinScore}))
}
