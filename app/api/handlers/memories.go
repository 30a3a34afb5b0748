package handlers

import (
	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// A request that names a user reads and changes only that user's memories.

func (h Native) createMemory(c *gin.Context, in ops.NewMemory) (core.SavedMemory, error) {
	tenant, err := userScope(c, in.UserID)
	if err != nil {
		return core.SavedMemory{}, err
	}
	return h.Memories.Create(c.Request.Context(), tenant, core.Memory{Content: in.Content, Metadata: in.Metadata})
}

func (h Native) listMemories(c *gin.Context, in ops.MemoryList) (core.Page[core.Memory], error) {
	tenant, err := userScope(c, in.UserID)
	if err != nil {
		return core.Page[core.Memory]{}, err
	}
	return h.Memories.List(c.Request.Context(), tenant, in.PageQuery)
}

func (h Native) getMemory(c *gin.Context, in ops.InMemory) (core.Memory, error) {
	tenant, err := userScope(c, in.UserID)
	if err != nil {
		return core.Memory{}, err
	}
	return h.Memories.Get(c.Request.Context(), tenant, in.MemoryID)
}

func (h Native) updateMemory(c *gin.Context, in ops.MemoryEdit) (core.SavedMemory, error) {
	tenant, err := userScope(c, in.UserID)
	if err != nil {
		return core.SavedMemory{}, err
	}
	return h.Memories.Update(c.Request.Context(), tenant, core.Memory{ID: in.MemoryID, Content: in.Content, Metadata: in.Metadata})
}

func (h Native) deleteMemory(c *gin.Context, in ops.InMemory) (ops.Nothing, error) {
	tenant, err := userScope(c, in.UserID)
	if err != nil {
		return ops.Nothing{}, err
	}
	return ops.Nothing{}, h.Memories.Delete(c.Request.Context(), tenant, in.MemoryID)
}

func (h Native) searchMemories(c *gin.Context, in ops.MemorySearch) (core.MemoryMatches, error) {
	tenant, err := userScope(c, in.UserID)
	if err != nil {
		return core.MemoryMatches{}, err
	}
	return h.Memories.Search(c.Request.Context(), tenant, in.MemorySearch)
}

// reindexMemories embeds one batch of stale memories. Only callers without an API key may reindex
// those of all owners.
func (h Native) reindexMemories(c *gin.Context, in core.Reindex) (core.Reindexed, error) {
	id, _ := core.IdentityFrom(c.Request.Context())
	switch {
	case in.AllOwners && id.Key != "":
		return core.Reindexed{}, core.Errorf(core.ErrForbidden, "an API key reindexes only its owner's memories; for all owners run bobbin api reindexMemories all_owners=true on the server")
	case len(in.Cursor) > maxCursor:
		return core.Reindexed{}, invalidError([]core.FieldError{{Field: "cursor", Detail: "is not a next_cursor of this list"}})
	}
	return h.Memories.Reindex(c.Request.Context(), scopeOf(c), in)
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
