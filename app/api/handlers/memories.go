package handlers

import (
	"context"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

func (h Native) registerMemories(r Router) {
	bind(r, ops.Search, h.search)
	bind(r, ops.CreateMemory, func(ctx context.Context, tenant core.Tenant, in ops.NewMemory) (core.SavedMemory, error) {
		return h.Memories.Create(ctx, tenant, core.Memory{Content: in.Content, Metadata: in.Metadata})
	})
	bind(r, ops.ListMemories, func(ctx context.Context, tenant core.Tenant, in ops.MemoryList) (core.Page[core.Memory], error) {
		return h.Memories.List(ctx, tenant, in.PageQuery)
	})
	bind(r, ops.SearchMemories, func(ctx context.Context, tenant core.Tenant, in ops.MemorySearch) (core.MemoryMatches, error) {
		return h.Memories.Search(ctx, tenant, in.MemorySearch)
	})
	bind(r, ops.ReindexMemories, h.reindexMemories)
	bind(r, ops.GetMemory, func(ctx context.Context, tenant core.Tenant, in ops.InMemory) (core.Memory, error) {
		return h.Memories.Get(ctx, tenant, in.MemoryID)
	})
	bind(r, ops.UpdateMemory, func(ctx context.Context, tenant core.Tenant, in ops.MemoryEdit) (core.SavedMemory, error) {
		return h.Memories.Update(ctx, tenant, core.Memory{ID: in.MemoryID, Content: in.Content, Metadata: in.Metadata})
	})
	bindDone(r, ops.DeleteMemory, func(ctx context.Context, tenant core.Tenant, in ops.InMemory) error {
		return h.Memories.Delete(ctx, tenant, in.MemoryID)
	})
}

// reindexMemories embeds one batch of stale memories. Only callers without an API key may reindex
// those of all owners.
func (h Native) reindexMemories(ctx context.Context, tenant core.Tenant, in core.Reindex) (core.Reindexed, error) {
	switch {
	case in.AllOwners && callerOf(ctx).Key != "":
		return core.Reindexed{}, core.Errorf(core.ErrForbidden, "an API key reindexes only its owner's memories; for all owners run bobbin api reindexMemories all_owners=true on the server")
	case len(in.Cursor) > maxCursor:
		return core.Reindexed{}, invalidError([]core.FieldError{{Field: "cursor", Detail: "is not a next_cursor of this list"}})
	}
	return h.Memories.Reindex(ctx, tenant, in)
}

// userScope returns the scope of the user that the request names; "" = the caller's own
// scope. An end user cannot name another user.
func userScope(tenant core.Tenant, user string) (core.Tenant, error) {
	if user == "" {
		return tenant, nil
	}
	err := checkNamedUser(tenant, user)
	tenant.User = user
	return tenant, err
}
