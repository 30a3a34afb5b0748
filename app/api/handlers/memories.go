package handlers

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Memories answers /api/v1/memories. Every request may name a user, and then sees
// and touches only that user's memories.
type Memories struct {
	memories memoryService
}

// NewMemories returns the handlers of memories.
func NewMemories(s Services) *Memories { return &Memories{memories: s.Memories} }

// newMemory is the body of Create.
type newMemory struct {
	UserID   string `json:"user_id"`
	Content  string `json:"content"`
	Metadata object `json:"metadata"`
}

// Create stores a memory: 201.
func (h *Memories) Create(c *gin.Context) error {
	body, err := readBody[newMemory](c)
	if err != nil {
		return err
	}
	scope, err := userScope(c, body.UserID)
	if err != nil {
		return err
	}
	saved, err := h.memories.Create(c.Request.Context(), scope, core.Memory{
		Content: body.Content, Metadata: json.RawMessage(body.Metadata),
	})
	if err != nil {
		return err
	}
	c.Header("Location", "/api/v1/memories/"+string(saved.ID))
	return answer(c, http.StatusCreated, saved)
}

// List answers a page of memories, the newest first.
func (h *Memories) List(c *gin.Context) error {
	q := readQuery(c, "user_id", "limit", "cursor")
	query := q.page()
	if err := q.err(); err != nil {
		return err
	}
	scope, err := userScope(c, q.text("user_id"))
	if err != nil {
		return err
	}
	page, err := h.memories.List(c.Request.Context(), scope, query)
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, listOf(page))
}

// Get answers one memory.
func (h *Memories) Get(c *gin.Context) error {
	scope, id, err := memoryParam(c)
	if err != nil {
		return err
	}
	memory, err := h.memories.Get(c.Request.Context(), scope, id)
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, memory)
}

// memoryContent is the body of Update.
type memoryContent struct {
	Content  string `json:"content"`
	Metadata object `json:"metadata"`
}

// Update replaces content and metadata and answers the memory.
func (h *Memories) Update(c *gin.Context) error {
	scope, id, err := memoryParam(c)
	if err != nil {
		return err
	}
	body, err := readBody[memoryContent](c)
	if err != nil {
		return err
	}
	saved, err := h.memories.Update(c.Request.Context(), scope, core.Memory{
		ID: id, Content: body.Content, Metadata: json.RawMessage(body.Metadata),
	})
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, saved)
}

// Delete removes a memory for good: 204.
func (h *Memories) Delete(c *gin.Context) error {
	scope, id, err := memoryParam(c)
	if err != nil {
		return err
	}
	if err := h.memories.Delete(c.Request.Context(), scope, id); err != nil {
		return err
	}
	return noContent(c)
}

// memorySearch is the body of Search.
type memorySearch struct {
	Query    string   `json:"query"`
	UserID   string   `json:"user_id"`
	Limit    int      `json:"limit"`
	MinScore *float32 `json:"min_score"`
}

// Search answers the memories that are nearest to a text.
func (h *Memories) Search(c *gin.Context) error {
	body, err := readBody[memorySearch](c)
	if err != nil {
		return err
	}
	scope, err := userScope(c, body.UserID)
	if err != nil {
		return err
	}
	matches, err := h.memories.Search(c.Request.Context(), scope, core.MemorySearch{
		Query: body.Query, Limit: body.Limit, MinScore: body.MinScore,
	})
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, matches)
}

// reindex is the body of Reindex.
type reindex struct {
	AllOwners bool   `json:"all_owners"`
	Cursor    string `json:"cursor"`
	Limit     int    `json:"limit"`
}

// Reindex embeds one batch of stale memories. Those of all owners are for this
// machine's own user.
func (h *Memories) Reindex(c *gin.Context) error {
	body, err := readBody[reindex](c)
	if err != nil {
		return err
	}
	id, _ := core.IdentityFrom(c.Request.Context())
	switch {
	case body.AllOwners && id.Key != "":
		return core.Errorf(core.ErrForbidden, "an API key reindexes its own memories; those of all owners: bobbin memories reindex, on the server's machine")
	case len(body.Cursor) > maxCursor:
		return invalid([]core.FieldError{{Field: "cursor", Detail: "is not one that was given out"}})
	}
	done, err := h.memories.Reindex(c.Request.Context(), scopeOf(c), core.Reindex{AllOwners: body.AllOwners, Cursor: body.Cursor, Limit: body.Limit})
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, done)
}

// memoryParam returns the memory that the path names, and the scope in which it has
// to be.
func memoryParam(c *gin.Context) (core.Scope, core.MemoryID, error) {
	q := readQuery(c, "user_id")
	if err := q.err(); err != nil {
		return core.Scope{}, "", err
	}
	scope, err := userScope(c, q.text("user_id"))
	if err != nil {
		return core.Scope{}, "", err
	}
	id, err := idParam[core.MemoryID](c, "memory")
	return scope, id, err
}

// maxUser bounds a user's id, in bytes.
const maxUser = 200

// userScope returns the rows that the caller may touch, of the one user that the
// request names; "" = of all that are the caller's. Who acts for one user cannot
// name another.
func userScope(c *gin.Context, user string) (core.Scope, error) {
	scope := scopeOf(c)
	switch {
	case user == "":
		return scope, nil
	case len(user) > maxUser || core.CleanText(user) != user:
		return scope, invalid([]core.FieldError{{Field: "user_id", Detail: "must be at most 200 bytes of valid UTF-8 without U+0000"}})
	}
	if err := checkUser(c, user); err != nil {
		return scope, err
	}
	scope.User = user
	return scope, nil
}
