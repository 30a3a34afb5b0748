package handlers

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"

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

// Search answers /api/v1/search.
type Search struct {
	search core.SearchStore
	places *quota.Quota
}

// NewSearch returns the handler of searches.
func NewSearch(s Services) *Search { return &Search{search: s.Search, places: s.Searches} }

// Messages answers a page of the messages that q finds.
func (h *Search) Messages(c *gin.Context) error {
	q := readQuery(c, "q", "sort", "session_id", "user_id", "agent", "role", "author", "after", "before", "all_branches", "limit", "cursor")
	query := core.SearchQuery{
		PageQuery: q.pageParams(), Text: q.textParam("q"), SessionID: core.SessionID(q.textParam("session_id")), UserID: q.textParam("user_id"),
		Sort: core.SearchSort(q.choiceParam("sort", string(core.SortRelevance), string(core.SortNewest))), Agent: q.textParam("agent"), Author: q.textParam("author"),
		Role: q.roleParam("role"), After: q.timeParam("after"), Before: q.timeParam("before"), AllBranches: q.boolParam("all_branches"),
	}
	if query.Text == "" {
		q.faults.Add("q", "is missing: give the text to search for")
	}
	if err := q.err(); err != nil {
		return err
	}
	if err := checkUser(c, query.UserID); err != nil {
		return err
	}
	tenant := scopeOf(c)
	page, err := SearchInPlace(c.Request.Context(), h.places, func(ctx context.Context) (core.SearchPage, error) {
		return h.search.Messages(ctx, tenant, query)
	})
	if err != nil {
		return err
	}
	fields := []field{{"indexing", searchIndexing(page.Indexing)}}
	if page.Meaning != "" {
		fields = append(fields, field{"meaning", page.Meaning})
	}
	if query.Sort != core.SortNewest {
		fields = append(fields, field{"total", searchTotal(page.Total)})
	}
	return writePage(c, page.Page, fields...)
}

// roleParam returns the parameter, "" if it is not given.
func (q *query) roleParam(name string) core.Role {
	text, ok := q.lookupParam(name)
	if !ok {
		return ""
	}
	switch r := core.Role(text); r {
	case core.RoleUser, core.RoleAssistant, core.RoleTool, core.RoleSystem:
		return r
	default:
		q.faults.Add(name, "must be user, assistant, tool or system")
		return ""
	}
}

// timeParam returns the parameter, the zero time if it is not given.
func (q *query) timeParam(name string) time.Time {
	text, ok := q.lookupParam(name)
	if !ok {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		q.faults.Add(name, "must be a time such as 2026-01-31T12:00:00Z")
	}
	return t
}
