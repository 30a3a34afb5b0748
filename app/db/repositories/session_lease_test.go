package repositories_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// history returns n messages for an import, questions and answers.
func history(n int, text string) []core.Message {
	list := make([]core.Message, 0, n)
	for i := range n {
		list = append(list, said([]core.Role{core.RoleUser, core.RoleAssistant}[i%2], fmt.Sprint(text, " ", i)))
	}
	return list
}

// beginImport imports a history up to the last step.
func (s *store) beginImport(t *testing.T, session core.SessionID, worker string, list ...core.Message) (finish func(context.Context) error) {
	t.Helper()
	return must.Get(repositories.BeginImport(t.Context(), s.messages, ann(), core.AppendMessages{SessionID: session, Messages: list, Import: true, Worker: worker}))(t)
}

// lapse ends the leases of all busy sessions.
func (s *store) lapse(t *testing.T) {
	t.Helper()
	s.exec(t, "UPDATE sessions SET busy_until = '2000-01-01 00:00:00+00:00' WHERE busy <> ''")
}

// recover recovers the sessions that are abandoned, and returns how many those were.
func (s *store) recover(t *testing.T) int {
	t.Helper()
	purges := repositories.NewPurges(s.Gorm)
	ids, err := purges.Abandoned(t.Context(), "other/1", 10)
	for _, id := range ids {
		if err == nil {
			_, err = purges.Recover(t.Context(), id, "other/1")
		}
	}
	must.Do(t, err)
	return len(ids)
}

func wantBusy(t *testing.T, what string, err error) {
	t.Helper()
	var shown *core.Error
	if !errors.As(err, &shown) || shown.Code != core.CodeSessionBusy || !errors.Is(err, core.ErrConflict) || shown.RetryAfter <= 0 {
		t.Errorf("%s: got %v, want a conflict with the code %s that says when to come back", what, err, core.CodeSessionBusy)
	}
}

// While a history is being imported the session takes no messages and says so
// immediately, also in another process; its readers see it as it was.
func TestImportingSessionIsBusy(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		s.append(t, id, true, history(4, "old rope")...)
		before := s.log(t, id)
		finish := s.beginImport(t, id, "w/1", history(300, "new rope")...)

		branches := repositories.NewBranches(s.Gorm)
		change := func(_ any, _ any, err error) error { return err }
		_, accepting := s.runs.Accept(t.Context(), ann(), ask(id, "a question"))
		_, appending := s.messages.Append(t.Context(), ann(), core.AppendMessages{SessionID: id, Messages: history(1, "x")})
		_, importing := s.messages.Append(t.Context(), ann(), core.AppendMessages{SessionID: id, Messages: history(300, "x"), Import: true})
		_, forking := branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: id})
		_, deleting := branches.Delete(t.Context(), ann(), id, before[0].ID)
		_, purging := repositories.NewPurges(s.Gorm).Session(t.Context(), id, false)
		for what, err := range map[string]error{
			"a question": accepting, "a message": appending, "another import": importing, "a fork": forking, "a deletion": deleting, "a purge": purging,
			"a pin":          change(branches.Pin(t.Context(), ann(), id, before[0].ID, true)),
			"another branch": change(branches.Select(t.Context(), ann(), id, before[0].ID)),
			"a user's messages": func() error {
				_, err := repositories.NewPurges(s.Gorm).FromShared(t.Context(), "ann", "kim", id)
				return err
			}(),
		} {
			wantBusy(t, what, err)
		}
		if session, err := s.sessions.Get(t.Context(), ann(), id); err != nil || !session.Importing || session.MessageCount != 4 || session.LastSeq != 4 {
			t.Errorf("got %+v, %v, want a session with 4 messages that says that it is imported into", session, err)
		}
		title := "renamed"
		if _, _, err := s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: &title}); err != nil {
			t.Errorf("a new title: %v, want it taken: it changes no message", err)
		}
		s.checkUnread(t, id, 4)

		must.Do(t, finish(t.Context()))
		log := s.log(t, id)
		gapless(t, "messages", log, func(m core.Message) int64 { return m.Seq })
		compare.True(t, len(log) == 304 && log[4].ParentID == log[3].ID, "got %d messages, want 304 in one chain", len(log))
		session := must.Get(s.sessions.Get(t.Context(), ann(), id))(t)
		compare.Equal(t, "want 304 messages and an idle session", []any{false, 304, int64(304), title}, []any{session.Importing, session.MessageCount, session.LastSeq, session.Title})
		gapless(t, "events", s.allEvents(t, id), func(e core.Event) int64 { return e.Seq })
		got := len(s.found(t, "new"))
		compare.True(t, got != 0, "the search finds nothing of what was imported")
		s.finish(t, s.accept(t, ask(id, "and now?")).Run, "go on")
	})
}

// checkUnread checks that nobody sees more than the first n messages of a session.
func (s *store) checkUnread(t *testing.T, id core.SessionID, n int) {
	t.Helper()
	compare.Equal(t, "log: messages", n, len(s.log(t, id)))
	for _, q := range []core.MessageQuery{{}, {AllBranches: true}, {Before: 1 << 40}, {After: int64(n - 1)}} {
		q.Limit = 200
		page, err := s.messages.List(t.Context(), ann(), id, q)
		if want := n - int(q.After); err != nil || len(page.Items) != want {
			t.Errorf("list %+v: got %d messages, %v, want %d", q, len(page.Items), err, want)
		}
	}
	compare.Equal(t, "conversation: len(list)", n, len(must.Get(s.messages.GetMessagesAfter(t.Context(), ann(), id, ""))(t)))
	compare.Equal(t, "count: got", n, must.Get(s.messages.CountOnPath(t.Context(), ann(), id, math.MaxInt64))(t))
	var hidden core.MessageID
	if err := s.Gorm.Raw("SELECT id FROM messages WHERE session_id = ? AND seq = ?", id, n+1).Scan(&hidden).Error; err != nil || hidden == "" {
		t.Fatalf("a message behind the log: %q, %v", hidden, err)
	}
	wantNotFound(t, "a message that is not in the log", compare.ErrorOf(s.messages.Get(t.Context(), ann(), id, hidden)))
	list := must.Get(s.messages.GetMessages(t.Context(), ann(), id, []core.MessageID{hidden}))(t)
	compare.True(t, len(list) == 0, "a message that is not in the log: got %d, want none", len(list))
	got := s.contents(t, ann(), core.SearchQuery{Text: "new rope"})
	compare.True(t, len(got) == 0, "the search finds %q", got)
	compare.Equal(t, "messages found", n, len(s.contents(t, ann(), core.SearchQuery{Text: "rope", SessionID: id})))
	if got := s.titlesWith(t, ann(), "new"); len(got) > 0 {
		t.Errorf("the search finds the sessions %q", got)
	}
}

// The messages of an import that dies are removed, also from the search index; a late step
// of the import writes nothing.
func TestAbandonedImportIsRemoved(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		s.append(t, id, true, history(4, "old rope")...)
		finish := s.beginImport(t, id, "w/1", history(300, "new rope")...)
		s.index(t)
		compare.Equal(t, "recovered sessions of those that are worked on", 0, s.recover(t))
		s.lapse(t)
		compare.Equal(t, "recovered sessions", 1, s.recover(t))
		wantError(t, "the import that lost its lease", finish(t.Context()), core.ErrStale)
		for table, want := range map[string]int{"messages": 4, "search_entries": 4} {
			compare.Equal(t, table+": rows", want, s.count(t, "SELECT COUNT(*) FROM "+table+" WHERE session_id = ?", id))
		}
		if s.Dialect() == "sqlite" {
			compare.Equal(t, "entries of the removed messages", 0, s.count(t, "SELECT COUNT(*) FROM search_words WHERE search_words MATCH 'new'"))
		}
		s.append(t, id, true, history(300, "third rope")...)
		gapless(t, "messages", s.log(t, id), func(m core.Message) int64 { return m.Seq })
	})
}

// An import that fails or panics in the middle leaves nothing, and the session takes messages.
func TestFailedImport(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for what, fail := range map[string]func() error{
			"an error": func() error { return errors.New("no disk") },
			"a panic":  func() error { panic("in a step") },
		} {
			s, steps := open(d), 0
			id := s.session(t).ID
			name := "fail with " + what
			err := d.Gorm.Callback().Raw().Before("gorm:raw").Register(name, func(tx *gorm.DB) {
				if strings.HasPrefix(tx.Statement.SQL.String(), `INSERT INTO "messages"`) {
					if steps++; steps == 2 {
						_ = tx.AddError(fail())
					}
				}
			})
			must.Do(t, err)
			func() {
				defer func() { _ = recover() }()
				_, err = s.messages.Append(t.Context(), ann(), core.AppendMessages{SessionID: id, Messages: history(300, "rope"), Import: true, Worker: worker})
			}()
			if err := d.Gorm.Callback().Raw().Remove(name); err != nil || steps != 2 {
				t.Fatalf("%s in step %d: %v, want it in the second", what, steps, err)
			}
			s.wantFree(t, id)
		}
	})
}

// wantFree checks that nothing of an import is left, and that the session takes messages.
func (s *store) wantFree(t *testing.T, id core.SessionID) {
	t.Helper()
	compare.Equal(t, "messages", 0, s.count(t, "SELECT COUNT(*) FROM messages WHERE session_id = ?", id))
	compare.Equal(t, "the session is busy", 0, s.count(t, "SELECT COUNT(*) FROM sessions WHERE busy <> '' AND id = ?", id))
}

// An import of few messages that are long is written in steps, too, and has one event.
func TestImportOfLongMessages(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		list := history(5, strings.Repeat("long ", 1<<16))
		var most int
		for _, q := range s.recorded(t, func() {
			if got := s.append(t, id, true, list...); len(got.Events) != 1 || got.Events[0].Type != core.EventMessagesImported || got.LastSeq != 5 {
				t.Errorf("got %v, seq %d, want one event for all 5", types(got.Events), got.LastSeq)
			}
		}) {
			size := 0
			for _, v := range q.values {
				text, _ := v.(string)
				size += len(text)
			}
			most = max(most, size)
		}
		compare.True(t, most <= 2<<20, "a statement writes %d bytes, want them in steps", most)
		got := s.log(t, id)
		compare.True(t, len(got) == 5 && got[4].Content == list[4].Content, "got %d messages, want all 5 as they were", len(got))
	})
}

// Others write while a history is imported: they wait for a step of it, not for all.
func TestOthersWriteDuringAnImport(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id, other := s.session(t).ID, s.session(t).ID
		imported := make(chan error, 1)
		go func() {
			_, err := s.messages.Append(t.Context(), ann(), core.AppendMessages{SessionID: id, Messages: history(2000, "rope"), Import: true})
			imported <- err
		}()
		writes := 0 // between the first row of the import and its end
		for {
			select {
			case err := <-imported:
				compare.True(t, err == nil && writes >= 2, "import: %v; %d writes of another session meanwhile, want some", err, writes)
				return
			default:
			}
			s.append(t, other, false, said(core.RoleUser, "hello"))
			session := must.Get(s.sessions.Get(t.Context(), ann(), id))(t)
			if session.Importing {
				writes++
			}
		}
	})
}
