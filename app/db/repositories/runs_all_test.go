package repositories_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// Deliveries of all runs are listed by their state, the newest first; the runs in either order.
func TestListAllOfSessions(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := must.Get(s.sessions.Create(t.Context(), core.Session{Owner: "ann", Agent: "assistant", Webhook: hook("here")}))(t)
		s.turns(t, session.ID, 3)
		deliveries := repositories.NewDeliveries(s.Gorm)
		must.Get2(s.sessions.Update(t.Context(), ann(), session.ID, core.SessionPatch{Title: new("reported")}))(t)
		var got []core.DeliveryID
		q := core.DeliveryQuery{State: core.DeliveryPending, PageQuery: core.PageQuery{Limit: 2}}
		for _, d := range all(t, func(cursor string) (core.Page[core.Delivery], error) {
			q.Cursor = cursor
			return deliveries.ListAll(t.Context(), ann(), q)
		}) {
			got = append(got, d.ID)
			compare.Equal(t, "the session's title", "reported", d.Title)
		}
		compare.Equal(t, fmt.Sprintf("%q: three, the newest first", got), true, len(got) == 3 && slices.IsSortedFunc(got, func(a, b core.DeliveryID) int { return strings.Compare(string(b), string(a)) }))
		for order, oldest := range map[int]bool{-1: false, 1: true} {
			runs := all(t, func(cursor string) (core.Page[core.RunHead], error) {
				list, err := s.runs.ListAll(t.Context(), ann(), core.RunQuery{Oldest: oldest, PageQuery: core.PageQuery{Limit: 2, Cursor: cursor}})
				return core.Page[core.RunHead]{Items: list.Items, NextCursor: list.NextCursor}, err
			})
			compare.Equal(t, fmt.Sprintf("%d runs, the oldest first %t: three in order", len(runs), oldest), true, len(runs) == 3 &&
				slices.IsSortedFunc(runs, func(a, b core.RunHead) int { return order * strings.Compare(string(a.ID), string(b.ID)) }))
		}
		for who, q := range map[string]core.DeliveryQuery{"eve": {}, "ann": {State: core.DeliveryFailed}} {
			compare.Equal(t, fmt.Sprintf("%s, %+v", who, q), 0, len(must.Get(deliveries.ListAll(t.Context(), core.Tenant{Owner: who}, q))(t).Items))
		}
	})
}
