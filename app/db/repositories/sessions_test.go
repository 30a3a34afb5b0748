package repositories_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/tests/compare"
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
	each(t, func(t *testing.T, s *store) {
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
		wantPages := func(what string, archived bool) {
			t.Helper()
			for _, limit := range []int{0, 1, 2, 3, 5, 22, 23, 24} {
				if diff := cmp.Diff(ids, s.listSessions(t, core.SessionQuery{PageQuery: core.PageQuery{Limit: limit}, Archived: archived})); diff != "" {
					t.Fatalf("%s, limit %d (-want +got):\n%s", what, limit, diff)
				}
			}
		}
		wantPages("none archived", false)
		compare.Equal(t, "of agent-1: sessions", 11, len(s.listSessions(t, core.SessionQuery{Agent: "agent-1", PageQuery: core.PageQuery{Limit: 4}})))
		compare.Equal(t, "of user-2: sessions", 7, len(s.listSessions(t, core.SessionQuery{UserID: "user-2"})))
		mine, err := s.sessions.List(t.Context(), core.Tenant{Owner: "ann", User: "user-2"}, core.SessionQuery{})
		if err != nil || len(mine.Items) != 7 {
			t.Errorf("in the scope of user-2: got %d sessions, %v, want 7", len(mine.Items), err)
		}
		theirs, err := s.sessions.List(t.Context(), bob(), core.SessionQuery{})
		if err != nil || len(theirs.Items) != 0 {
			t.Errorf("of another owner: got %d sessions, %v, want none", len(theirs.Items), err)
		}
		s.exec(t, "UPDATE sessions SET archived_at = updated_at WHERE agent = 'agent-1'")
		wantPages("with archived ones", true)
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
	each(t, func(t *testing.T, s *store) {
		a, b, c := s.session(t).ID, s.session(t).ID, s.session(t).ID
		s.turns(t, a, 1)
		title := "new"
		must.Get2(s.sessions.Update(t.Context(), ann(), b, core.SessionPatch{Title: &title}))(t)
		compare.Equal(t, "order", []core.SessionID{b, a, c}, s.listSessions(t, core.SessionQuery{}))
	})
}

func TestCreateSession(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		through := core.NewID[core.MessageID]()
		got, err := s.sessions.Create(t.Context(), core.Session{
			Owner: "ann", Agent: "researcher", Model: "gpt-4o", Title: "Größe 大 😀", UserID: "carol", Source: core.SourceWeb,
			Timezone: "Europe/Vienna", Instructions: "be short", Metadata: json.RawMessage(`{"b":[1,2],"a":"\u00e9"}`),
			// A new session is empty, whatever the caller says.
			MessageCount: 9, LastSeq: 9, LastEventSeq: 9, SummaryVersion: 9, PromptRevision: 9, SummaryThroughID: &through,
		})
		must.Do(t, err)
		if !core.ValidID(got.ID) || got.CreatedAt.IsZero() || !got.UpdatedAt.Equal(got.CreatedAt) || got.LastSeq != 0 || got.SummaryThroughID != nil {
			t.Errorf("created: got %+v, want id, times, and nothing in it", got)
		}
		compare.Equal(t, "session", got, s.get(t, got.ID), sameJSON())
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

// Lists and events have no texts of summaries, unless a list is asked for them.
func TestListsHaveNoSummaries(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		s.turns(t, id, 2)
		s.exec(t, "UPDATE sessions SET conversation_summary = 'They counted.', summary_version = 1")
		for _, q := range []core.SessionQuery{{}, {Order: core.OrderByCreation}, {Text: "Travel"}, {Archived: true}} {
			for _, whole := range []bool{false, true} {
				if q.Summaries = whole; q.Text != "" {
					must.Get2(s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new("Travel")}))(t)
				}
				page, err := s.sessions.List(t.Context(), ann(), q)
				if err != nil || len(page.Items) != 1 {
					t.Fatalf("%+v: got %d sessions, %v", q, len(page.Items), err)
				}
				if got := page.Items[0]; (got.ConversationSummary != nil) != whole || got.SummaryVersion != 1 || got.Agent == "" {
					t.Errorf("%+v: got %+v", q, got)
				}
			}
		}
		_, events := must.Get2(s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new("Count")}))(t)
		events = append(events, s.allEvents(t, id)...)
		for _, e := range events {
			if e.Type != core.EventSessionUpdated {
				continue
			}
			if told := decode[core.SessionData](t, e).Session; told.ConversationSummary != nil || told.ID != id {
				t.Errorf("event %d has %+v", e.Seq, told)
			}
		}
	})
}

// Sessions are found by what their runs do.
func TestListByStatus(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		idle, running, waiting, queued := s.session(t).ID, s.session(t).ID, s.session(t).ID, s.session(t).ID
		s.accept(t, ask(running, "go"))
		s.accept(t, ask(running, "and then?"))
		s.waits(t, waiting, time.Hour, "pay:always")
		later := ask(queued, "go")
		later.Worker = ""
		s.accept(t, later)
		for status, want := range map[core.SessionStatus]core.SessionID{
			core.SessionIdle: idle, core.SessionRunning: running, core.SessionWaiting: waiting, core.SessionQueued: queued,
		} {
			page, err := s.sessions.List(t.Context(), ann(), core.SessionQuery{Status: status})
			if err != nil || len(page.Items) != 1 || page.Items[0].ID != want || page.Items[0].Status != status {
				t.Errorf("%s: got %+v, %v, want %s", status, page.Items, err, want)
			}
		}
	})
}

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
	each(t, func(t *testing.T, s *store) {
		var all []core.SessionID
		for range 9 {
			all = append(all, s.session(t).ID)
		}
		slices.Reverse(all)
		must.Do(t, s.archive(t.Context(), ann(), all[4]))
		used := func() {
			for _, id := range []core.SessionID{all[8], all[1], all[6]} {
				must.Get2(s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new("used")}))(t)
			}
			s.session(t)
			must.Do(t, s.archive(t.Context(), ann(), all[7]))
		}
		q := core.SessionQuery{PageQuery: core.PageQuery{Limit: 2}, Order: core.OrderByCreation, Archived: true}
		compare.Equal(t, "s.pages(t, q, used)", all, s.pages(t, q, used))
		q.Archived = false
		want := slices.DeleteFunc(slices.Clone(all), func(id core.SessionID) bool { return id == all[4] || id == all[7] })
		compare.Equal(t, "without archived ones: want behind the new one", want, s.pages(t, q, nil)[1:])
		page, err := s.sessions.List(t.Context(), ann(), q)
		must.Do(t, err)
		q.Order, q.Cursor = core.OrderByActivity, *page.NextCursor
		_, err = s.sessions.List(t.Context(), ann(), q)
		wantError(t, "a cursor of the other order", err, core.ErrInvalid)
	})
}

// A ranked list of sessions has those first whose title has the words, then those whose messages fit
// best; it obeys the filters of the list, and its pages are stable while messages come in (P16-7).
func TestRankedSessions(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
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
			compare.Equal(t, fmt.Sprintf("%+v", tt.q), tt.want, strings.Join(list(tt.q), ", "))
		}
		for _, text := range []string{"", "-pump", "!"} {
			if _, err := s.sessions.List(t.Context(), ann(), core.SessionQuery{Text: text, Order: core.OrderByRelevance}); !errors.Is(err, core.ErrInvalid) {
				t.Errorf("%q: got %v, want it refused", text, err)
			}
		}
	})
}
