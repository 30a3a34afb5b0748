package handlers

import (
	"context"

	"bobbin/app/core"
	"bobbin/app/core/quota"
)

// NewSearchPlaces returns the limits of concurrent searches, those of agents included: each reads up
// to a thousand messages.
func NewSearchPlaces() *quota.Quota {
	return quota.New(quota.Limits{Total: 16, Owner: 8, User: 2, What: "search"})
}

// SearchInPlace runs a search of the caller in one of the places, for at most core.SearchTime.
func SearchInPlace[T any](ctx context.Context, places *quota.Quota, search func(context.Context) (T, error)) (T, error) {
	caller, _ := core.IdentityFrom(ctx)
	place := places.Hold(caller.Tenant())
	defer place.Release()
	if err := place.Grow(1); err != nil {
		var none T
		return none, err
	}
	return core.WithinSearchTime(ctx, search)
}

func (h Native) search(ctx context.Context, tenant core.Tenant, in core.SearchQuery) (core.SearchPage, error) {
	if err := checkUser(tenant, in.UserID); err != nil {
		return core.SearchPage{}, err
	}
	return SearchInPlace(ctx, h.Searches, func(ctx context.Context) (core.SearchPage, error) { return h.Search.Messages(ctx, tenant, in) })
}
