package repositories_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// pages reads all pages of a list, and calls between after the first.
func (s *store) pages(t *testing.T, q core.SessionQuery, between func()) (ids []core.SessionID) {
	t.Helper()
	for {
		page := must.Get(s.sessions.List(t.Context(), ann(), q))(t)
		for _, one := range page.Items {
			ids = append(ids, one.ID)
		}
		if page.NextCursor == nil {
			return ids
		}
		if q.Cursor == "" && between != nil {
			between()
		}
		q.Cursor = *page.NextCursor
	}
}

// Reading all sessions page by page in the order of creation misses none, though sessions
// are used, archived and created meanwhile.
func TestListByCreationIsStable(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		var all []core.SessionID
		for range 9 {
			all = append(all, s.session(t).ID)
		}
		slices.Reverse(all)
		must.Do(t, s.archive(t.Context(), ann(), all[4]))
		used := func() {
			for _, id := range []core.SessionID{all[8], all[1], all[6]} {
				if _, _, err := s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new("used")}); err != nil {
					t.Fatal(err)
				}
			}
			s.session(t)
			must.Do(t, s.archive(t.Context(), ann(), all[7]))
		}
		q := core.SessionQuery{PageQuery: core.PageQuery{Limit: 2}, Order: core.OrderByCreation, Archived: true}
		if got := s.pages(t, q, used); !slices.Equal(got, all) {
			t.Errorf("got %v, want %v", got, all)
		}
		q.Archived = false
		want := slices.DeleteFunc(slices.Clone(all), func(id core.SessionID) bool { return id == all[4] || id == all[7] })
		if got := s.pages(t, q, nil); !slices.Equal(got[1:], want) {
			t.Errorf("without archived ones: got %v, want %v behind the new one", got, want)
		}
		page, err := s.sessions.List(t.Context(), ann(), q)
		if err != nil {
			t.Fatal(err)
		}
		q.Order, q.Cursor = core.OrderByActivity, *page.NextCursor
		_, err = s.sessions.List(t.Context(), ann(), q)
		wantError(t, "a cursor of the other order", err, core.ErrInvalid)
	})
}

// Archived sessions and others are listed together in one order.
func TestListWithArchivedSessions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		var want []core.SessionID
		for i := range 10 {
			id := s.session(t).ID
			if i%3 != 0 {
				must.Do(t, s.archive(t.Context(), ann(), id))
			}
			want = append(want, id)
		}
		slices.Reverse(want)
		for _, limit := range []int{1, 3, 4, 10, 50} {
			q := core.SessionQuery{PageQuery: core.PageQuery{Limit: limit}, Archived: true}
			if got := s.pages(t, q, nil); !slices.Equal(got, want) {
				t.Errorf("%d a page: got %v, want %v", limit, got, want)
			}
		}
	})
}

// A ranked list of sessions has those first whose title has the words, then those whose messages fit
// best; it obeys the filters of the list, and its pages are stable while messages come in (P16-7).
func TestRankedSessions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		create := func(title, owner string, questions ...string) core.Session {
			t.Helper()
			session := must.Get(s.sessions.Create(t.Context(), core.Session{Owner: owner, UserID: "carol", Agent: "a", Title: title}))(t)
			for _, q := range questions {
				in := core.AppendMessages{SessionID: session.ID, Messages: []core.Message{said(core.RoleUser, q)}}
				must.Get(s.messages.Append(t.Context(), core.Tenant{Owner: owner}, in))(t)
			}
			return session
		}
		create("weather", "ann", "It rains in the hall of the old house.", "Tomorrow the sun shines.")
		create("leak", "ann", "The pump of hall seven leaks since Monday.", "The seal of the pump was replaced.")
		create("Pump leaking hall", "ann", "We met at noon.")
		create("other pump", "ann", "A pump stands in the garden.")
		archived := create("archived", "ann", "The pump of hall seven leaks again, and the pump of hall seven is old.")
		create("bob's", "bob", "The pump of hall seven leaks.")
		must.Do(t, s.archive(t.Context(), ann(), archived.ID))
		const question = "Which pump was leaking in hall seven?"
		list := func(q core.SessionQuery) (titles []string) {
			t.Helper()
			for q.Order = core.OrderByRelevance; ; {
				page := must.Get(s.sessions.List(t.Context(), ann(), q))(t)
				for _, it := range page.Items {
					titles = append(titles, it.Title)
				}
				if page.NextCursor == nil {
					return titles
				}
				q.Cursor = *page.NextCursor
				create(fmt.Sprint("new ", len(titles)), "ann", "The pump of hall seven leaks.") // while pages are read
			}
		}
		one := core.PageQuery{Limit: 1}
		for _, tt := range []struct {
			q    core.SessionQuery
			want string
		}{
			{core.SessionQuery{Text: question}, "leak, other pump, weather"},
			{core.SessionQuery{Text: "leaking pump hall"}, "Pump leaking hall, leak, other pump, weather"},
			{core.SessionQuery{Text: question, Archived: true}, "archived, leak, other pump, weather"},
			{core.SessionQuery{Text: `"seal of the pump"`}, "leak"},
			{core.SessionQuery{Text: question, Agent: "b"}, ""},
			{core.SessionQuery{Text: question, Tag: "none"}, ""},
			{core.SessionQuery{Text: "nowhere"}, ""},
			{core.SessionQuery{Text: question, PageQuery: one}, "leak, other pump, weather"},
		} {
			if got := strings.Join(list(tt.q), ", "); got != tt.want {
				t.Errorf("%+v: got %s, want %s", tt.q, got, tt.want)
			}
		}
		for _, text := range []string{"", "-pump", "!"} {
			if _, err := s.sessions.List(t.Context(), ann(), core.SessionQuery{Text: text, Order: core.OrderByRelevance}); !errors.Is(err, core.ErrInvalid) {
				t.Errorf("%q: got %v, want it refused", text, err)
			}
		}
	})
}
