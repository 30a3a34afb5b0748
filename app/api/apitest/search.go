package apitest

import (
	"context"

	"bobbin/app/core"
)

// Search is the backend as the search.
type Search struct{ *Backend }

// Messages answers one hit.
func (s Search) Messages(ctx context.Context, scope core.Scope, q core.SearchQuery) (core.SearchPage, error) {
	next := "next"
	hit := core.SearchHit{
		SessionID: SessionID, SessionTitle: "Greetings", MessageID: AnswerID, Seq: 2, Role: core.RoleAssistant,
		Excerpt: "Hi <there>", Highlights: []core.Highlight{{Start: 0, End: 2}}, CreatedAt: Time(),
	}
	return core.SearchPage{Page: core.Page[core.SearchHit]{Items: []core.SearchHit{hit}, NextCursor: &next}}, s.called(ctx, "Search.Messages", scope, q)
}
