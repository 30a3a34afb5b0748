package handlers

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Memories answers /api/v1/memories. A request that names a user reads and changes only
// that user's memories.
type Memories struct {
	memories memoryService
}

// NewMemories returns the handlers of memories.
func NewMemories(s Services) *Memories { return &Memories{memories: s.Memories} }

// Create stores a memory: 201.
func (h *Memories) Create(c *gin.Context) error {
	body, err := readBody[struct {
		UserID   string `json:"user_id"`
		Content  string `json:"content"`
		Metadata object `json:"metadata"`
	}](c)
	if err != nil {
		return err
	}
	tenant, err := userScope(c, body.UserID)
	if err != nil {
		return err
	}
	saved, err := h.memories.Create(c.Request.Context(), tenant, core.Memory{
		Content: body.Content, Metadata: json.RawMessage(body.Metadata),
	})
	if err != nil {
		return err
	}
	c.Header("Location", "/api/v1/memories/"+string(saved.ID))
	return writeJSON(c, http.StatusCreated, saved)
}

// List answers a page of memories, newest first.
func (h *Memories) List(c *gin.Context) error {
	q := readQuery(c, "user_id", "limit", "cursor")
	query := q.pageParams()
	if err := q.err(); err != nil {
		return err
	}
	tenant, err := userScope(c, q.textParam("user_id"))
	if err != nil {
		return err
	}
	page, err := h.memories.List(c.Request.Context(), tenant, query)
	if err != nil {
		return err
	}
	return writePage(c, page)
}

// Get answers one memory.
func (h *Memories) Get(c *gin.Context) error {
	tenant, id, err := memoryParam(c)
	if err != nil {
		return err
	}
	memory, err := h.memories.Get(c.Request.Context(), tenant, id)
	return respond(c, http.StatusOK, memory, err)
}

// Update replaces content and metadata and answers the memory.
func (h *Memories) Update(c *gin.Context) error {
	tenant, id, err := memoryParam(c)
	if err != nil {
		return err
	}
	body, err := readBody[struct {
		Content  string `json:"content"`
		Metadata object `json:"metadata"`
	}](c)
	if err != nil {
		return err
	}
	saved, err := h.memories.Update(c.Request.Context(), tenant, core.Memory{
		ID: id, Content: body.Content, Metadata: json.RawMessage(body.Metadata),
	})
	return respond(c, http.StatusOK, saved, err)
}

// Delete permanently removes a memory: 204.
func (h *Memories) Delete(c *gin.Context) error {
	tenant, id, err := memoryParam(c)
	if err != nil {
		return err
	}
	return noContent(c, h.memories.Delete(c.Request.Context(), tenant, id))
}

// memorySearch is the body of Search.
type memorySearch struct {
	Query    string   `json:"query"`
	UserID   string   `json:"user_id"`
	Limit    int      `json:"limit"`
	MinScore *float32 `json:"min_score"`
}

// Search answers the memories most similar to a text.
func (h *Memories) Search(c *gin.Context) error {
	body, err := readBody[memorySearch](c)
	if err != nil {
		return err
	}
	tenant, err := userScope(c, body.UserID)
	if err != nil {
		return err
	}
	matches, err := h.memories.Search(c.Request.Context(), tenant, core.MemorySearch{
		Query: body.Query, Limit: body.Limit, MinScore: body.MinScore,
	})
	return respond(c, http.StatusOK, matches, err)
}

// Reindex embeds one batch of stale memories. Only callers without an API key may reindex
// those of all owners.
func (h *Memories) Reindex(c *gin.Context) error {
	body, err := readBody[struct {
		AllOwners bool   `json:"all_owners"`
		Cursor    string `json:"cursor"`
		Limit     int    `json:"limit"`
	}](c)
	if err != nil {
		return err
	}
	id, _ := core.IdentityFrom(c.Request.Context())
	switch {
	case body.AllOwners && id.Key != "":
		return core.Errorf(core.ErrForbidden, "an API key reindexes only its owner's memories; for all owners run bobbin api reindexMemories all_owners=true on the server")
	case len(body.Cursor) > maxCursor:
		return invalidError([]core.FieldError{{Field: "cursor", Detail: "is not a next_cursor of this list"}})
	}
	done, err := h.memories.Reindex(c.Request.Context(), scopeOf(c), core.Reindex{AllOwners: body.AllOwners, Cursor: body.Cursor, Limit: body.Limit})
	return respond(c, http.StatusOK, done, err)
}

// memoryParam returns the memory id in the path, and the scope it must belong to.
func memoryParam(c *gin.Context) (core.Tenant, core.MemoryID, error) {
	q := readQuery(c, "user_id")
	if err := q.err(); err != nil {
		return core.Tenant{}, "", err
	}
	tenant, err := userScope(c, q.textParam("user_id"))
	if err != nil {
		return core.Tenant{}, "", err
	}
	return tenant, core.MemoryID(c.Param("id")), nil
}

// userScope returns the scope of the user that the request names; "" = the caller's own
// scope. An end user cannot name another user.
func userScope(c *gin.Context, user string) (core.Tenant, error) {
	tenant := scopeOf(c)
	if user == "" {
		return tenant, nil
	}
	if err := checkNamedUser(c, user); err != nil {
		return tenant, err
	}
	tenant.User = user
	return tenant, nil
}
