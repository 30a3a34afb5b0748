package repositories_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

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
				must.True(t, err == nil && len(page.Items) == 1, "%+v: got %d sessions, %v", q, len(page.Items), err)
				got := page.Items[0]
				compare.True(t, (got.ConversationSummary != nil) == whole && got.SummaryVersion == 1 && got.Agent != "", "%+v: got %+v", q, got)
			}
		}
		_, events := must.Get2(s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new("Count")}))(t)
		events = append(events, s.allEvents(t, id)...)
		for _, e := range events {
			if e.Type != core.EventSessionUpdated {
				continue
			}
			told := decode[core.SessionData](t, e).Session
			compare.True(t, told.ConversationSummary == nil && told.ID == id, "event %d has %+v", e.Seq, told)
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
			page := must.Get(s.sessions.List(t.Context(), ann(), core.SessionQuery{Status: status}))(t)
			compare.True(t, len(page.Items) == 1 && page.Items[0].ID == want && page.Items[0].Status == status, "%s: got %+v, want %s", status, page.Items, want)
		}
	})
}

// pages reads all pages of a list, and calls between after the first.
func (s *store) pages(t *testing.T, q core.SessionQuery, between func()) (ids []core.SessionID) {
	t.Helper()
	for _, one := range all(t, func(cursor string) (core.Page[core.Session], error) {
		if q.Cursor == "" && cursor != "" && between != nil {
			between()
		}
		q.Cursor = cursor
		return s.sessions.List(t.Context(), ann(), q)
	}) {
		ids = append(ids, one.ID)
	}
	return ids
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
		wantError(t, "a cursor of the other order", compare.ErrorOf(s.sessions.List(t.Context(), ann(), q)), core.ErrInvalid)
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
			q.Order = core.OrderByRelevance
			for _, it := range all(t, func(cursor string) (core.Page[core.Session], error) {
				if q.Cursor = cursor; cursor != "" {
					create("new", "ann", "The pump of hall seven leaks.") // while pages are read
				}
				return s.sessions.List(t.Context(), ann(), q)
			}) {
				titles = append(titles, it.Title)
			}
			return titles
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
			compare.Error(t, fmt.Sprintf("%q: want it refused", text), core.ErrInvalid, compare.ErrorOf(s.sessions.List(t.Context(), ann(), core.SessionQuery{Text: text, Order: core.OrderByRelevance})))
		}
	})
}

// temporary creates a temporary session of ann.
func (s *store) temporary(t *testing.T, user string) core.Session {
	t.Helper()
	return must.Get(s.sessions.Create(t.Context(), core.Session{Owner: "ann", Agent: "a", Title: "about bees", UserID: user, Temporary: true}))(t)
}

// A temporary session can be read by its id, and is in no list, no search, and no Slack; its
// forks are temporary, too.
func TestTemporarySessionsAreHidden(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		kept, brief := s.session(t), s.temporary(t, "carol")
		for _, id := range []core.SessionID{kept.ID, brief.ID} {
			s.finish(t, s.accept(t, ask(id, "a question about bees")).Run, "bees")
		}
		got := s.get(t, brief.ID)
		if !got.Temporary || got.ExpiresAt == nil || !got.ExpiresAt.Equal(got.UpdatedAt.Add(core.TemporaryLife)) || s.get(t, kept.ID).ExpiresAt != nil {
			t.Errorf("got temporary %v until %v, want it to be removed a day after %v", got.Temporary, got.ExpiresAt, got.UpdatedAt)
		}
		fork := must.Get(repositories.NewBranches(s.Gorm).Fork(t.Context(), ann(), core.ForkSession{SessionID: brief.ID}))(t)
		compare.True(t, fork.Temporary, "got the fork %+v, want it temporary", fork)
		must.Do(t, s.archive(t.Context(), ann(), fork.ID))
		for _, q := range []core.SessionQuery{{}, {Archived: true}, {Order: core.OrderByCreation}, {UserID: "carol"}, {Text: "bees", Archived: true}, {Text: "bees", TitlesOnly: true}, {Agent: "a"}} {
			page := must.Get(s.sessions.List(t.Context(), ann(), q))(t)
			if slices.ContainsFunc(page.Items, func(s core.Session) bool { return s.ID != kept.ID }) {
				t.Errorf("the list of %+v has %d sessions, want at most the one that is kept", q, len(page.Items))
			}
		}
		page, err := repositories.NewSearch(s.Gorm).Messages(t.Context(), ann(), core.SearchQuery{Text: "bees"})
		s.index(t)
		compare.True(t, err == nil && len(page.Items) == 2 && page.Items[0].SessionID == kept.ID && page.Items[1].SessionID == kept.ID, "got the hits %+v, %v, want those of the session that is kept", page.Items, err)
		compare.Equal(t, "entries of temporary sessions", 0, s.count(t, "SELECT COUNT(*) FROM search_entries WHERE session_id <> ?", kept.ID))
		_, err = repositories.NewSlackThreads(s.Gorm).Bind(t.Context(), core.SlackThread{Owner: "ann", SessionID: brief.ID, Team: "T1", Channel: "C1", Thread: "1.1", Mode: core.SlackTwoWay})
		wantError(t, "Slack", err, core.ErrUnprocessable)
	})
}

// The owner's default webhook hears nothing of temporary sessions; that of a run does.
func TestTemporarySessionsAndWebhooks(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		hook := core.Webhook{URL: "https://example.com/hook", Secret: "whsec_c2VjcmV0c2VjcmV0c2VjcmV0"}
		must.Do(t, repositories.NewOwnerWebhooks(s.Gorm).Set(t.Context(), "ann", hook))
		brief := s.temporary(t, "").ID
		s.turns(t, brief, 1)
		compare.Equal(t, "deliveries: want none to the owner's default", 0, s.count(t, "SELECT COUNT(*) FROM deliveries"))
		in := ask(brief, "with a webhook of its own")
		in.Webhook = &hook
		s.finish(t, s.accept(t, in).Run, "done")
		compare.Equal(t, "deliveries: want the one of the run's own webhook", 1, s.count(t, "SELECT COUNT(*) FROM deliveries"))
	})
}

// A day after its last activity a temporary session is due, also while a run waits for an
// answer, and its removal leaves nothing but its usage.
func TestTemporarySessionsExpire(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		r := repositories.NewPurges(s.Gorm)
		old, waiting, busy, fresh, kept := s.temporary(t, "carol").ID, s.temporary(t, "").ID, s.temporary(t, "").ID, s.temporary(t, "").ID, s.session(t).ID
		run := s.accept(t, ask(old, "hello")).Run
		s.write(t, core.RunWrite{RunID: run.ID, SessionID: old, Attempt: 1, Messages: []core.Message{answer("hi")},
			ModelCalls: []core.ModelCall{{ID: core.NewID[string](), Model: "m", Purpose: core.PurposeAnswer, Usage: core.Usage{InputTokens: 7}}}, End: &core.RunEnd{Status: core.RunSucceeded}})
		s.waits(t, waiting, 0, "pay:always")
		s.accept(t, ask(busy, "at work"))
		for _, id := range []core.SessionID{old, waiting, busy, kept} {
			s.exec(t, "UPDATE sessions SET updated_at = '2020-01-01 00:00:00+00:00' WHERE id = ?", id)
		}
		due, err := r.ExpiredSessions(t.Context(), true, core.TemporaryLife, 10)
		if want := []core.SessionID{old, waiting}; err != nil || !slices.Equal(sorted(due), sorted(want)) {
			t.Errorf("got %v, %v, want %v and neither %s at work nor %s in use", due, err, want, busy, fresh)
		}
		purges := repositories.NewPurges(s.Gorm)
		compare.Equal(t, "the user's sessions: want the temporary one", []core.SessionID{old}, must.Get(purges.OfUser(t.Context(), "ann", "carol"))(t))
		for _, id := range due {
			must.Get(purges.Session(t.Context(), id, true))(t)
		}
		compare.Equal(t, "rows are left", 0, s.count(t, "SELECT (SELECT COUNT(*) FROM messages WHERE session_id = ?) + (SELECT COUNT(*) FROM runs WHERE session_id = ?)", old, waiting))
		compare.Equal(t, "tokens of the usage", 7, s.count(t, "SELECT COALESCE(SUM(input_tokens), 0) FROM model_calls"))
	})
}

// sorted returns the ids in order.
func sorted(ids []core.SessionID) []core.SessionID { return slices.Sorted(slices.Values(ids)) }

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

// An alias names one session of its owner, however many open it concurrently.
func TestAliasOpen(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		aliases := repositories.NewAliases(d.Gorm)
		thread := core.Alias{Surface: core.SourceSlack, Name: "T1/C1/1.2"}
		ids := make([]core.SessionID, racers)
		race(racers, func(i int) {
			s, err := aliases.Open(t.Context(), thread, core.Session{Owner: "ann", Agent: "tester", Title: "the pump"})
			compare.Error(t, "open", nil, err)
			ids[i] = s.ID
		})
		must.True(t, ids[0] != "" && len(slices.Compact(slices.Clone(ids))) == 1, "got the sessions %v, want one", ids)
		all, err := repositories.NewSessions(d.Gorm).List(t.Context(), ann(), core.SessionQuery{})
		compare.True(t, err == nil && len(all.Items) == 1, "got %d sessions (%v), want one", len(all.Items), err)
		for name, other := range map[string]struct {
			owner string
			alias core.Alias
		}{
			"another owner":   {"eve", thread},
			"another thread":  {"ann", core.Alias{Surface: core.SourceSlack, Name: "T1/C1/3.4"}},
			"another surface": {"ann", core.Alias{Surface: core.SourceAPI, Name: thread.Name}},
		} {
			s := must.Get(aliases.Open(t.Context(), other.alias, core.Session{Owner: other.owner, Agent: "tester"}))(t)
			compare.True(t, s.ID != ids[0], "%s: got session %s, want a new session", name, s.ID)
		}
	})
}

// An alias moves only from the session that it belongs to, and is removed with it.
func TestAliasRebind(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		aliases, s := repositories.NewAliases(d.Gorm), open(d)
		thread := core.Alias{Surface: core.SourceSlack, Name: "T1/C1/1.2"}
		first := must.Get(aliases.Open(t.Context(), thread, core.Session{Owner: "ann", Agent: "tester"}))(t)
		second := s.session(t)
		compare.Error(t, "another owner", core.ErrStale, aliases.Rebind(t.Context(), "eve", thread, first.ID, second.ID))
		must.Do(t, aliases.Rebind(t.Context(), "ann", thread, first.ID, second.ID))
		compare.Error(t, "the second time", core.ErrStale, aliases.Rebind(t.Context(), "ann", thread, first.ID, second.ID))
		compare.Equal(t, "got.ID", second.ID, must.Get(aliases.Open(t.Context(), thread, core.Session{Owner: "ann", Agent: "tester"}))(t).ID)
		must.Get(repositories.NewPurges(d.Gorm).Session(t.Context(), second.ID, false))(t)
		got := must.Get(aliases.Open(t.Context(), thread, core.Session{Owner: "ann", Agent: "tester"}))(t)
		compare.True(t, got.ID != second.ID, "after the purge: got session %s, want a new session", got.ID)
	})
}
