package repositories_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// listSessions returns all pages, checking each.
func (s *store) listSessions(t testing.TB, q core.SessionQuery) []core.SessionID {
	t.Helper()
	return allPages(t, q.Limit, func(cursor string) (core.Page[core.Session], error) {
		q.Cursor = cursor
		return s.sessions.List(t.Context(), ann(), q)
	}, func(v core.Session) core.SessionID { return v.ID })
}

// allPages reads a list to its end and returns the keys of its items. Every page
// but the last must be full.
func allPages[T any, K comparable](t testing.TB, limit int, list func(cursor string) (core.Page[T], error), key func(T) K) []K {
	t.Helper()
	if limit == 0 {
		limit = core.DefaultPageLimit
	}
	keys := []K{}
	for cursor := ""; ; {
		page, err := list(cursor)
		if err != nil {
			t.Fatalf("list after %q: %v", cursor, err)
		}
		if page.Items == nil {
			t.Fatalf("items: got nil, want an empty list at least")
		}
		for _, v := range page.Items {
			keys = append(keys, key(v))
		}
		if page.NextCursor == nil {
			return keys
		}
		if len(page.Items) != limit {
			t.Fatalf("page: got %d items and a next page, want %d", len(page.Items), limit)
		}
		cursor = *page.NextCursor
	}
}

// Pages of any size, concatenated, are the whole list in its order.
func TestListSessionsPages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		type entry struct {
			id core.SessionID
			at time.Time
		}
		var want []entry
		for i := range 23 {
			// Several share a time, whole seconds and microseconds mixed.
			at := base.Add(time.Duration(i/3) * 333_333 * time.Microsecond)
			got := must.Get(s.sessions.Create(t.Context(), core.Session{
				Owner: "ann", Agent: fmt.Sprint("agent-", i%2), UserID: fmt.Sprint("user-", i%3), CreatedAt: base, UpdatedAt: at}))(t)
			want = append(want, entry{got.ID, at})
		}
		slices.SortFunc(want, func(a, b entry) int {
			if c := b.at.Compare(a.at); c != 0 {
				return c
			}
			return -cmpStrings(a.id, b.id)
		})
		ids := make([]core.SessionID, 0, len(want))
		for _, w := range want {
			ids = append(ids, w.id)
		}
		for _, limit := range []int{0, 1, 2, 3, 5, 22, 23, 24} {
			if diff := cmp.Diff(ids, s.listSessions(t, core.SessionQuery{PageQuery: core.PageQuery{Limit: limit}})); diff != "" {
				t.Fatalf("limit %d (-want +got):\n%s", limit, diff)
			}
		}
		if got := s.listSessions(t, core.SessionQuery{Agent: "agent-1", PageQuery: core.PageQuery{Limit: 4}}); len(got) != 11 {
			t.Errorf("of agent-1: got %d sessions, want 11", len(got))
		}
		if got := s.listSessions(t, core.SessionQuery{UserID: "user-2"}); len(got) != 7 {
			t.Errorf("of user-2: got %d sessions, want 7", len(got))
		}
		mine, err := s.sessions.List(t.Context(), core.Tenant{Owner: "ann", User: "user-2"}, core.SessionQuery{})
		if err != nil || len(mine.Items) != 7 {
			t.Errorf("in the scope of user-2: got %d sessions, %v, want 7", len(mine.Items), err)
		}
		theirs, err := s.sessions.List(t.Context(), bob(), core.SessionQuery{})
		if err != nil || len(theirs.Items) != 0 {
			t.Errorf("of another owner: got %d sessions, %v, want none", len(theirs.Items), err)
		}
	})
}

func cmpStrings[T ~string](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestNewestActivityComesFirst(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		a, b, c := s.session(t).ID, s.session(t).ID, s.session(t).ID
		s.turns(t, a, 1)
		title := "new"
		if _, _, err := s.sessions.Update(t.Context(), ann(), b, core.SessionPatch{Title: &title}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]core.SessionID{b, a, c}, s.listSessions(t, core.SessionQuery{})); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestCreateSession(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		through := core.NewID[core.MessageID]()
		got, err := s.sessions.Create(t.Context(), core.Session{
			Owner: "ann", Agent: "researcher", Model: "gpt-4o", Title: "Größe 大 😀", UserID: "carol", Source: core.SourceWeb,
			Timezone: "Europe/Vienna", Instructions: "be short", Metadata: json.RawMessage(`{"b":[1,2],"a":"\u00e9"}`),
			// A new session is empty, whatever the caller says.
			MessageCount: 9, LastSeq: 9, LastEventSeq: 9, SummaryVersion: 9, PromptRevision: 9, SummaryThroughID: &through,
		})
		if err != nil {
			t.Fatal(err)
		}
		if !core.ValidID(got.ID) || got.CreatedAt.IsZero() || !got.UpdatedAt.Equal(got.CreatedAt) || got.LastSeq != 0 || got.SummaryThroughID != nil {
			t.Errorf("created: got %+v, want id, times, and nothing in it", got)
		}
		if diff := cmp.Diff(got, s.sessionOf(t, got.ID), sameJSON()); diff != "" {
			t.Errorf("session (-returned +stored):\n%s", diff)
		}
		again := core.Session{ID: got.ID, Owner: "bob"}
		_, err = s.sessions.Create(t.Context(), again)
		wantError(t, "same id", err, core.ErrConflict)
		for name, bad := range map[string]core.Session{
			"no owner":   {},
			"bad id":     {Owner: "ann", ID: "s-1"},
			"metadata":   {Owner: "ann", Metadata: json.RawMessage(`"text"`)},
			"not JSON":   {Owner: "ann", Metadata: json.RawMessage(`{"a":`)},
			"NUL":        {Owner: "ann", Title: "\x00"},
			"NUL inside": {Owner: "ann", Metadata: json.RawMessage(`{"a":"\u0000"}`)},
		} {
			_, err := s.sessions.Create(t.Context(), bad)
			wantError(t, name, err, core.ErrInvalid)
		}
	})
}
