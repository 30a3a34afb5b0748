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

// Deliveries of all runs are listed by their state, the newest first.
func TestListAllDeliveries(t *testing.T) {
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
			if got = append(got, d.ID); d.Title != "reported" {
				t.Errorf("got title %q, want the session's", d.Title)
			}
		}
		if len(got) != 3 || !slices.IsSortedFunc(got, func(a, b core.DeliveryID) int { return strings.Compare(string(b), string(a)) }) {
			t.Errorf("got %q, want three, the newest first", got)
		}
		for who, q := range map[string]core.DeliveryQuery{"eve": {}, "ann": {State: core.DeliveryFailed}} {
			compare.Equal(t, fmt.Sprintf("%s, %+v", who, q), 0, len(must.Get(deliveries.ListAll(t.Context(), core.Tenant{Owner: who}, q))(t).Items))
		}
	})
}
