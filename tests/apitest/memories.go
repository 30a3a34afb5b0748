package apitest

import (
	"cmp"
	"context"
	"encoding/json"

	"bobbin/app/core"
)

// Memories is the backend as the memory service.
type Memories struct{ *Backend }

func sampleMemory() core.Memory {
	return core.Memory{
		ID: MemoryID, UserID: "u-1", Content: "The inspection is on Friday.", Metadata: json.RawMessage(`{"source":"mail"}`),
		EmbeddingModel: "hashing-384-v1", Dimension: 384, CreatedAt: Time(), UpdatedAt: Time(),
	}
}

// Create answers the memory with the given fields.
func (m Memories) Create(ctx context.Context, tenant core.Tenant, in core.Memory) (core.SavedMemory, error) {
	out := m.Memory
	out.UserID, out.Content, out.Metadata = tenant.User, in.Content, in.Metadata
	return core.SavedMemory{Memory: out}, m.recordCall(ctx, "Memories.Create", tenant, in)
}

// Get answers Backend.Memory.
func (m Memories) Get(ctx context.Context, tenant core.Tenant, id core.MemoryID) (core.Memory, error) {
	return m.Memory, cmp.Or(m.recordCall(ctx, "Memories.Get", tenant, id), missing("memory", id, MemoryID))
}

// List answers one page.
func (m Memories) List(ctx context.Context, tenant core.Tenant, q core.PageQuery) (core.Page[core.Memory], error) {
	return core.Page[core.Memory]{Items: []core.Memory{m.Memory}}, m.recordCall(ctx, "Memories.List", tenant, q)
}

// Update answers the memory with the given fields, not embedded.
func (m Memories) Update(ctx context.Context, tenant core.Tenant, in core.Memory) (core.SavedMemory, error) {
	out := m.Memory
	out.Content, out.Metadata, out.EmbeddingModel, out.Dimension, out.Stale = in.Content, in.Metadata, "", 0, true
	return core.SavedMemory{Memory: out, Notice: "the memory is stored, but search does not find it before it is reindexed: its provider cannot be reached"}, m.recordCall(ctx, "Memories.Update", tenant, in)
}

// Delete does nothing.
func (m Memories) Delete(ctx context.Context, tenant core.Tenant, id core.MemoryID) error {
	return m.recordCall(ctx, "Memories.Delete", tenant, id)
}

// Search records the call.
func (m Memories) Search(ctx context.Context, tenant core.Tenant, q core.MemorySearch) (core.MemoryMatches, error) {
	return core.MemoryMatches{}, m.recordCall(ctx, "Memories.Search", tenant, q)
}

// Reindex records the call.
func (m Memories) Reindex(ctx context.Context, tenant core.Tenant, q core.Reindex) (core.Reindexed, error) {
	return core.Reindexed{}, m.recordCall(ctx, "Memories.Reindex", tenant, q)
}
