package repositories_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// A new table has to say what a purge does with it: either something of a user is in
// it, or it is one of those here.
func TestPurgeKnowsEveryTable(t *testing.T) {
	t.Parallel()
	nobodys := []string{"goose_db_version", "message_vector_work", "model_calibrations", "write_checks",
		"api_keys", "audit_log", // the operator's; what a purge notes has no user in it
		"owner_webhooks",   // the owner's, whose users do not choose it
		"receiver_outages", // hosts
		"signing_keys",
		"slack_installations"} // of workspaces, for slack.owner
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		query := "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'search_words%'" // the words go with search_entries
		if d.Dialect() == "postgres" {
			query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
		}
		var tables []string
		must.Do(t, d.Gorm.WithContext(t.Context()).Raw(query).Scan(&tables).Error)
		for _, table := range tables {
			if !slices.Contains(nobodys, table) && !slices.Contains(repositories.PurgedTables(), table) {
				t.Errorf("what becomes of the table %s when a session or a user is purged? Say it in purge.go", table)
			}
		}
		for _, table := range repositories.PurgedTables() {
			compare.True(t, slices.Contains(tables, table), "there is no table %s", table)
		}
	})
}

// purgeCounts returns what a purge of the sessions, and of the user of ann's, would do to each table.
func (s *store) purgeCounts(t *testing.T, user string, ids ...core.SessionID) map[string]core.PurgedTable {
	t.Helper()
	counts := map[string]core.PurgedTable{}
	for _, line := range must.Get(repositories.NewPurges(s.Gorm).Count(t.Context(), "ann", user, ids))(t) {
		counts[line.Table] = line
	}
	return counts
}

// A session with an unfinished run is removed only with force.
func TestPurgeWaitsForRuns(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		purges := repositories.NewPurges(s.Gorm)
		session, other := s.session(t), s.session(t)
		s.turns(t, other.ID, 2)
		run := s.accept(t, ask(session.ID, "work")).Run
		s.accept(t, ask(session.ID, "and then"))
		_, err := purges.Session(t.Context(), session.ID, false)
		wantError(t, "purge while a run works", err, core.ErrConflict)
		runs, err := purges.Unfinished(t.Context(), []core.SessionID{session.ID, other.ID})
		compare.True(t, err == nil && len(runs) == 2 && runs[0].ID == run.ID && runs[0].Leased && !runs[1].Leased && runs[0].Owner == "ann", "unfinished: %+v, %v, want the running run first and leased", runs, err)
		s.expire(t)
		if runs, err = purges.Unfinished(t.Context(), []core.SessionID{session.ID}); err != nil || runs[0].Leased {
			t.Errorf("unfinished, with a lease that is past: %+v, %v", runs, err)
		}
		before := s.log(t, other.ID)
		counted := s.purgeCounts(t, "", session.ID)
		compare.Equal(t, "to be removed", []int64{1, 2, 1}, []int64{counted["sessions"].Removed, counted["runs"].Removed, counted["messages"].Removed})
		events, err := purges.Session(t.Context(), session.ID, true)
		compare.True(t, err == nil && len(events) == 1 && events[0].Type == core.EventResync && events[0].Owner.Owner == "ann", "forced: %+v, %v", events, err)
		_, err = purges.Session(t.Context(), session.ID, true)
		wantNotFound(t, "purge again", err)
		// Its former worker can no longer store anything.
		compare.True(t, compare.ErrorOf(s.runs.Write(t.Context(), core.RunWrite{RunID: run.ID, SessionID: session.ID, Attempt: run.Attempt, Messages: []core.Message{answer("late")}})) != nil, "a late write was stored")
		for table, left := range s.purgeCounts(t, "", session.ID) {
			compare.Equal(t, "left in "+table, 0, left.Removed+left.Emptied)
		}
		compare.Equal(t, "messages of the other session", len(before), len(s.log(t, other.ID)))
	})
}

func TestPurgeFindsSessions(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		purges := repositories.NewPurges(s.Gorm)
		old, fresh := s.session(t), s.session(t)
		for _, id := range []core.SessionID{old.ID, fresh.ID} {
			must.Do(t, s.archive(t.Context(), ann(), id))
		}
		s.session(t) // not archived
		s.exec(t, "UPDATE sessions SET archived_at = '2020-01-01 00:00:00+00:00' WHERE id = ?", old.ID)
		for owner, want := range map[string]int{"": 1, "ann": 1, "bob": 0} {
			ids := must.Get(purges.Archived(t.Context(), owner, core.Now().Add(-time.Hour)))(t)
			compare.True(t, len(ids) == want && (want != 1 || ids[0] == old.ID), "archived an hour ago, of %q: %v, want %d", owner, ids, want)
		}
		wantNotFound(t, "an id that cannot be", purges.Exist(t.Context(), "", []core.SessionID{"x"}))
		wantNotFound(t, "another owner's", purges.Exist(t.Context(), "bob", []core.SessionID{old.ID}))
		must.Do(t, purges.Exist(t.Context(), "", []core.SessionID{old.ID, fresh.ID}))
	})
}

// A session that is being removed is hidden; when the process dies, another one continues,
// and nothing is left.
func TestPurgeThatBreaksOff(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		purges := repositories.NewPurges(s.Gorm)
		id := s.session(t).ID
		must.Get2(s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new("a copy")}))(t)
		blob := s.upload(t, "", "a.txt", "a secret")
		in := ask(id, "rope")
		in.Input.Parts = []core.Part{{Type: core.PartFile, BlobID: blob.ID, Name: "a.txt"}}
		s.finish(t, s.accept(t, in).Run, "rope")
		s.append(t, id, true, history(700, "rope")...)
		s.summarize(t, id, s.log(t, id)[100])
		must.Do(t, repositories.BeginPurge(t.Context(), purges, id))
		s.checkHidden(t, id)
		_, err := purges.Session(t.Context(), id, true)
		wantBusy(t, "another purge", err)
		s.exec(t, "DELETE FROM session_readers WHERE session_id = ?", id) // one of the last tables
		s.lapse(t)
		compare.Equal(t, "recovered sessions", 1, s.recover(t))
		compare.Equal(t, "rows are left", 0, s.left(t, id)+s.count(t, "SELECT COUNT(*) FROM blob_contents"))
		_, err = purges.Session(t.Context(), id, true)
		wantNotFound(t, "a purge after it", err)
	})
}

// A purge that is forced takes a session over that a history is imported into, and a
// fork that is not complete.
func TestPurgeOfABusySession(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		purges := repositories.NewPurges(s.Gorm)
		id := s.session(t).ID
		s.append(t, id, true, history(40, "rope")...)
		fork, finishFork := s.beginFork(t, id, 20)
		finishImport := s.beginImport(t, id, "w/1", history(300, "rope")...)
		for what, tt := range map[string]struct {
			id     core.SessionID
			finish func() error
		}{"import": {id, func() error { return finishImport(t.Context()) }}, "fork": {fork, finishFork}} {
			_, err := purges.Session(t.Context(), tt.id, false)
			wantBusy(t, "a purge during the "+what, err)
			must.Get(purges.Session(t.Context(), tt.id, true))(t)
			compare.True(t, tt.finish() != nil, "the %s went on after the purge", what)
			n := s.left(t, tt.id)
			compare.True(t, n == 0, "%d rows are left after the %s", n, what)
		}
	})
}

// The purge of a large session, which takes several steps, counts what it removed in all of them,
// keeps what the days came to and leaves no name in them.
func TestUsageAfterAPurgeInSteps(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		large, small, last := s.session(t).ID, s.session(t).ID, s.session(t).ID
		var calls []core.ModelCall
		for i := range 120 {
			c := call(day(1, 1).AddDate(0, 0, i%28))
			c.User = []string{"carol", "dave", ""}[i%3]
			calls = append(calls, c)
		}
		for id, some := range map[core.SessionID][]core.ModelCall{large: calls, small: calls[:3], last: calls[:3]} {
			run := s.accept(t, ask(id, "go")).Run
			s.write(t, core.RunWrite{RunID: run.ID, SessionID: id, Attempt: 1, ModelCalls: some, End: &core.RunEnd{Status: core.RunSucceeded}})
		}
		s.append(t, large, true, history(1234, "rope")...)
		s.index(t)
		purges := repositories.NewPurges(s.Gorm)
		counted := s.purgeCounts(t, "", large)
		compare.Equal(t, "calls to be emptied, then rows to be removed", []int64{120, 1235, 1235, 4, 1}, []int64{counted["model_calls"].Emptied, counted["messages"].Removed, counted["search_entries"].Removed, counted["session_events"].Removed, counted["sessions"].Removed})
		must.Get(purges.Session(t.Context(), large, false))(t)
		compare.Equal(t, "rows are left, and another session has messages: want 1", []int{0, 1}, []int{s.left(t, large), len(s.log(t, small))})
		compare.Equal(t, "by user", []string{" 122", "carol 2", "dave 2"}, s.usageKeys(t, core.UsageByUser))
		compare.Equal(t, "by session", []string{string(last) + " 3", string(small) + " 3", " 120"}, s.usageKeys(t, core.UsageBySession))
		compare.Equal(t, "rows of the session are left", 0, s.count(t, "SELECT COUNT(*) FROM usage_days WHERE session_id = ? OR calls <= 0", large))
		counted = s.purgeCounts(t, "carol")
		compare.Equal(t, "calls and days of a user", []int64{2, 3}, []int64{counted["model_calls"].Emptied, counted["usage_days"].Emptied})
		must.Do(t, purges.User(t.Context(), "ann", "carol"))
		compare.Equal(t, "by user", []string{" 124", "dave 2"}, s.usageKeys(t, core.UsageByUser))
		compare.Equal(t, "rows with the user's name", 0, s.count(t, "SELECT COUNT(*) FROM usage_days WHERE user_id = 'carol'"))
		compare.Equal(t, "spent: got.MicroUSD: want that of 7 calls", 7*3, must.Get(s.modelCalls.Spent(t.Context(), "ann", day(1, 0)))(t).MicroUSD)
	})
}

// Canceling a queued run that regenerates an answer keeps the files of its question.
func TestCanceledRegenerationKeepsTheFileOfTheQuestion(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		in := ask(s.session(t).ID, "look at this")
		in.Input.Parts = []core.Part{s.upload(t, "", "a.txt", "the file").Part()}
		first := s.accept(t, in)
		again := ask(in.SessionID, "")
		again.Answers, again.Multitask = first.Message.ID, core.MultitaskInterrupt
		queued := s.accept(t, again).Run
		if _, _, err := s.runs.RequestCancel(t.Context(), ann(), queued.ID); err != nil || queued.Status != core.RunQueued {
			t.Fatalf("cancel a %s run: %v", queued.Status, err)
		}
		compare.Equal(t, "swept", 0, s.sweep(t).Blobs)
	})
}

// The files of an import that broke off are swept.
func TestFilesOfAnAbandonedImportAreSwept(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id, file := s.session(t).ID, s.upload(t, "", "a.txt", "the file")
		list := history(300, "rope")
		list[200].Parts = []core.Part{file.Part()}
		s.beginImport(t, id, "w/1", list...)
		s.lapse(t)
		compare.Equal(t, "recovered sessions", 1, s.recover(t))
		compare.Equal(t, "swept: want the file", 1, s.sweep(t).Blobs)
	})
}

// A purge finds a request that was executed and never answered.
func TestResultsAreFoundByWhatTheyMention(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		purges := repositories.NewPurges(s.Gorm)
		_, in := s.begun(t, "POST /api/v1/sessions")
		made := must.Get(s.sessions.Create(keyedContext(t, in, "h", nil), core.Session{Owner: "ann"}))(t)
		compare.Equal(t, "removed", 1, must.Get(purges.Answers(t.Context(), "", "", []core.SessionID{made.ID}, false))(t))
	})
}

// wrote is what the user eve says in sessions of others.
func wrote(session core.SessionID) core.AcceptRun {
	in := ask(session, "my password is "+secret)
	in.User = "eve"
	return in
}

// fromShared purges eve from the session, by force.
func (s *store) fromShared(t *testing.T, id core.SessionID) []core.Event {
	t.Helper()
	return must.Get(repositories.NewPurges(s.Gorm).FromShared(t.Context(), "ann", "eve", id))(t)
}

// wantNothingLeft checks that nothing of eve is anywhere, and that the proof says so.
func (s *store) wantNothingLeft(t *testing.T, what string) {
	t.Helper()
	hits := s.remains(t)
	compare.True(t, len(hits) == 0, "%s: the secret is still in %v", what, hits)
	counted := s.purgeCounts(t, "eve")
	compare.Equal(t, what+": the proof counts messages, runs", []int64{0, 0}, []int64{counted["messages"].Emptied, counted["runs"].Emptied})
}

// With force, unfinished runs of the user end: they must not resume later with nothing to
// answer. Runs of others stay as they are.
func TestPurgeEndsRuns(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		running := s.accept(t, wrote(id)).Run
		queued := s.accept(t, wrote(id)).Run
		others := s.accept(t, ask(id, "and mine")).Run
		s.expire(t)
		events := s.fromShared(t, id)
		for _, run := range []core.RunID{running.ID, queued.ID} {
			compare.Equal(t, fmt.Sprintf("run %s: got.Status: want it canceled", run), core.RunCanceled, must.Get(s.runs.Get(t.Context(), ann(), run))(t).Status)
		}
		s.wantNothingLeft(t, "runs that had not ended")
		canceled := 0
		for _, e := range events {
			if e.Type == core.EventRunCanceled {
				canceled++
			}
		}
		if canceled != 2 {
			t.Errorf("got events %v, want two runs canceled", types(events))
		}
		compare.Equal(t, "claimed run: want that of the others", others.ID, must.Get(s.runs.Claim(t.Context(), id, worker))(t).Run.ID)
		// Whoever comes while somebody works is told so.
		_, err := repositories.NewPurges(s.Gorm).FromShared(t.Context(), "ann", "eve", id)
		wantError(t, "while a run works, by force", err, core.ErrConflict)
	})
}

// Copies in forks of others are the user's words, too, also without an author; and
// copies of copies.
func TestPurgeFindsCopies(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		purges := repositories.NewPurges(s.Gorm)
		id := s.session(t).ID
		s.turns(t, id, 1)
		s.finish(t, s.accept(t, wrote(id)).Run, "it is "+secret)
		branches := repositories.NewBranches(s.Gorm)
		fork := must.Get(branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: id}))(t)
		again := must.Get(branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: fork.ID}))(t)
		shared, err := purges.Shared(t.Context(), "ann", "eve")
		if err != nil || len(shared) != 3 {
			t.Fatalf("got %v, error %v, want the session and both forks", shared, err)
		}
		for _, id := range shared {
			s.fromShared(t, id)
		}
		s.wantNothingLeft(t, "copies")
		for _, id := range []core.SessionID{id, fork.ID, again.ID} {
			compare.Equal(t, fmt.Sprintf("session %s: messages are left: want the two of others", id), 2, len(s.log(t, id)))
		}
	})
}

// Messages that the user deleted before lose their client message id.
func TestPurgeOfWhatWasDeleted(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		in := wrote(id)
		in.ClientMessageID = "eve-" + secret
		s.finish(t, s.accept(t, in).Run, "done")
		s.erase(t, id, s.log(t, id)[0].ID)
		s.fromShared(t, id)
		s.wantNothingLeft(t, "deleted before")
		n := s.count(t, "SELECT COUNT(*) FROM messages WHERE client_message_id IS NOT NULL")
		compare.True(t, n == 0, "%d messages have their clients' ids", n)
		if n := s.count(t, "SELECT COUNT(*) FROM session_events WHERE CAST(data AS text) LIKE ?", "%eve-"+secret+"%"); n > 0 {
			t.Errorf("%d events have their clients' ids", n)
		}
	})
}

// What others appended in the user's name is found by the author's id, in copies too; and the
// session forgets that the user spoke.
func TestPurgeOfAppendedMessages(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		purges := repositories.NewPurges(s.Gorm)
		id := s.session(t).ID
		m := said(core.RoleUser, "my password is "+secret)
		m.Author, m.AuthorID, m.ClientMessageID = secret, "eve", "c-"+secret
		s.append(t, id, false, m)
		s.append(t, id, false, said(core.RoleAssistant, "noted"))
		fork := must.Get(repositories.NewBranches(s.Gorm).Fork(t.Context(), ann(), core.ForkSession{SessionID: id}))(t)
		compare.Equal(t, "the copy is by: want its author", "eve", s.log(t, fork.ID)[0].AuthorID)
		compare.Equal(t, "exported messages: want the message and its copy", 2, len(must.Get(repositories.NewPurges(s.Gorm).Elsewhere(t.Context(), "ann", "eve", "", 10))(t)))
		shared, err := purges.Shared(t.Context(), "ann", "eve")
		if err != nil || len(shared) != 2 {
			t.Fatalf("got %v, error %v, want the session and its fork", shared, err)
		}
		for _, id := range shared {
			s.fromShared(t, id)
		}
		s.wantNothingLeft(t, "appended")
		n := s.count(t, "SELECT COUNT(*) FROM messages WHERE author_id <> ''") + s.count(t, "SELECT COUNT(*) FROM sessions WHERE speakers <> ''")
		compare.True(t, n == 0, "%d rows know that the user spoke", n)
	})
}
