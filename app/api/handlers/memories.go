package handlers

import (
	"context"

	"bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/app/core/quota"
)

func (h Native) registerMemories(r Router) {
	bind(r, ops.Search, h.SearchMessages)
	bind(r, ops.CreateMemory, func(ctx context.Context, tenant core.Tenant, in ops.NewMemory) (core.SavedMemory, error) {
		return h.Memories.Create(ctx, tenant, core.Memory{Content: in.Content, Metadata: in.Metadata})
	})
	bind(r, ops.ListMemories, func(ctx context.Context, tenant core.Tenant, in ops.MemoryList) (core.Page[core.Memory], error) {
		return h.Memories.List(ctx, tenant, in.PageQuery)
	})
	bind(r, ops.SearchMemories, func(ctx context.Context, tenant core.Tenant, in ops.MemorySearch) (core.MemoryMatches, error) {
		return h.Memories.Search(ctx, tenant, in.MemorySearch)
	})
	bind(r, ops.ReindexMemories, func(ctx context.Context, tenant core.Tenant, in core.Reindex) (core.Reindexed, error) { // one batch
		switch {
		case in.AllOwners && callerOf(ctx).Key != "":
			return core.Reindexed{}, core.Errorf(core.ErrForbidden, "an API key reindexes only its owner's memories; for all owners run bobbin api reindexMemories all_owners=true on the server")
		case len(in.Cursor) > maxCursor:
			return core.Reindexed{}, core.OneFault("cursor", "is not a next_cursor of this list")
		}
		return h.Memories.Reindex(ctx, tenant, in)
	})
	bind(r, ops.GetMemory, func(ctx context.Context, tenant core.Tenant, in ops.InMemory) (core.Memory, error) {
		return h.Memories.Get(ctx, tenant, in.MemoryID)
	})
	bind(r, ops.UpdateMemory, func(ctx context.Context, tenant core.Tenant, in ops.MemoryEdit) (core.SavedMemory, error) {
		return h.Memories.Update(ctx, tenant, core.Memory{ID: in.MemoryID, Content: in.Content, Metadata: in.Metadata})
	})
	bindDone(r, ops.DeleteMemory, func(ctx context.Context, tenant core.Tenant, in ops.InMemory) error {
		return h.Memories.Store.Delete(ctx, tenant, in.MemoryID)
	})
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

// NewSearchPlaces returns the limits of concurrent searches, those of agents included: each reads up
// to a thousand messages.
func NewSearchPlaces() *quota.Quota {
	return quota.New(quota.Limits{Total: 16, Owner: 8, User: 2, What: "search"})
}

// searchInPlace runs a search of the caller in one of the places, for at most core.SearchTime.
func searchInPlace[T any](ctx context.Context, places *quota.Quota, tenant core.Tenant, search func(context.Context) (T, error)) (found T, err error) {
	place := places.Hold(tenant)
	defer place.Release()
	if err := place.Grow(1); err != nil {
		return found, err
	}
	return core.WithinSearchTime(ctx, search)
}

// SearchMessages searches messages in one of the places.
func (s Services) SearchMessages(ctx context.Context, tenant core.Tenant, q core.SearchQuery) (core.SearchPage, error) {
	if err := tenant.CheckUser(q.UserID); err != nil {
		return core.SearchPage{}, err
	}
	return searchInPlace(ctx, s.Searches, tenant, func(ctx context.Context) (core.SearchPage, error) { return s.Search.Messages(ctx, tenant, q) })
}

// ListSessions lists sessions; those with certain texts, tags or metadata in one of the places.
func (s Services) ListSessions(ctx context.Context, tenant core.Tenant, q core.SessionQuery) (core.Page[core.Session], error) {
	if err := tenant.CheckUser(q.UserID); err != nil {
		return core.Page[core.Session]{}, err
	}
	list := func(ctx context.Context) (core.Page[core.Session], error) { return s.Sessions.List(ctx, tenant, q) }
	if q.Text == "" && q.Tag == "" && q.Metadata == nil {
		return list(ctx)
	}
	return searchInPlace(ctx, s.Searches, tenant, list)
}
