// Package records reads everything that is stored of a session, for tests that break
// things, and checks that it is whole: numbers without gaps, each question once with
// its answer, no tool call without a result, and summaries that go on where the one
// before ends.
package records

import (
	"cmp"
	"context"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
)

// everything is more events than a session has.
const everything = 1_000_000

// Record is everything that is stored of one session of the local owner.
type Record struct {
	Session   core.Session
	Messages  []core.Message // by seq
	Runs      []core.Run     // by queue_seq
	Events    []core.Event   // by number
	Summaries []core.Summary // by version, without those that are prepared
}

// Load reads the session.
func Load(ctx context.Context, g *gorm.DB, id core.SessionID) (r Record, err error) {
	tenant := core.Tenant{Owner: core.LocalOwner}
	if r.Session, r.Summaries, err = Summaries(ctx, g, id); err != nil {
		return r, err
	}
	if r.Messages, err = repositories.NewMessages(g).GetMessagesAfter(ctx, tenant, id, ""); err != nil {
		return r, err
	}
	if r.Events, err = repositories.NewEvents(g).After(ctx, id, 0, everything); err != nil {
		return r, err
	}
	r.Runs, err = Pages(func(q core.PageQuery) (core.Page[core.Run], error) {
		return repositories.NewRuns(g).List(ctx, tenant, id, q)
	})
	slices.SortFunc(r.Runs, func(a, b core.Run) int { return cmp.Compare(a.QueueSeq, b.QueueSeq) })
	return r, err
}

// Summaries reads the session and its summaries that were in use, by version. One that
// is prepared is in no prompt yet.
func Summaries(ctx context.Context, g *gorm.DB, id core.SessionID) (core.Session, []core.Summary, error) {
	tenant := core.Tenant{Owner: core.LocalOwner}
	session, err := repositories.NewSessions(g).Get(ctx, tenant, id)
	if err != nil {
		return session, nil, err
	}
	versions, err := Pages(func(q core.PageQuery) (core.Page[core.Summary], error) {
		return repositories.NewSummaries(g).List(ctx, tenant, id, q)
	})
	slices.Reverse(versions)
	versions = slices.DeleteFunc(versions, func(s core.Summary) bool { return s.State == core.SummaryPrepared })
	return session, versions, err
}

// Pages reads all pages of a list.
func Pages[T any](list func(core.PageQuery) (core.Page[T], error)) (all []T, err error) {
	q := core.PageQuery{Limit: 100}
	for {
		page, err := list(q)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			return all, nil
		}
		q.Cursor = *page.NextCursor
	}
}

// Decoded returns the data of an event; of another type they are empty.
func Decoded[T any](e core.Event) T {
	data, _ := e.Data.(T) // the checks see that it is empty
	return data
}
