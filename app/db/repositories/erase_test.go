package repositories_test

import (
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// secret is in every text of the turn that is deleted.
const secret = "swordfish"

// confess makes a turn with a tool call in which the secret is everywhere, and
// returns its messages.
func (s *store) confess(t *testing.T, session core.SessionID) []core.Message {
	t.Helper()
	in := ask(session, "my password is "+secret)
	in.Options = &core.RunOptions{Instructions: "remember " + secret}
	in.Input.Metadata, in.Input.Author = []byte(`{"note":"`+secret+`"}`), secret
	a := s.accept(t, in)
	call := answer("")
	call.ToolCalls = []core.ToolCall{{ID: "call-1", Name: "store", Arguments: `{"p":"` + secret + `"}`}}
	result := core.Message{
		ID: core.NewID[core.MessageID](), Role: core.RoleTool, Content: "stored " + secret, ToolCallID: "call-1", ToolName: "store", TokenCount: 4,
	}
	s.write(t, core.RunWrite{
		RunID: a.Run.ID, SessionID: session, Attempt: 1, Messages: []core.Message{call, result},
		Events: []core.Event{
			core.NewEvent(session, a.Run.ID, core.EventToolStarted, core.ToolStartedData{ToolCallID: "call-1", Name: "store", Arguments: secret}),
			core.NewEvent(session, a.Run.ID, core.EventToolFinished, core.ToolFinishedData{ToolCallID: "call-1", Preview: secret}),
		},
	})
	s.finish(t, a.Run, "I know that it is "+secret)
	return s.log(t, session)
}

// remains counts the rows of every table in which the secret is.
func (s *store) remains(t *testing.T) map[string]int {
	t.Helper()
	hits := map[string]int{}
	for table, text := range map[string]string{
		"messages":          "content || author || COALESCE(CAST(tool_calls AS text), '') || COALESCE(CAST(metadata AS text), '')",
		"runs":              "CAST(input AS text) || COALESCE(CAST(options AS text), '')",
		"session_events":    "CAST(data AS text)",
		"session_summaries": "content || focus",
		"sessions":          "COALESCE(conversation_summary, '')",
	} {
		if n := s.count(t, "SELECT COUNT(*) FROM "+table+" WHERE "+text+" LIKE ?", "%"+secret+"%"); n > 0 {
			hits[table] = n
		}
	}
	return hits
}

// A user's deletion of a message clears its content everywhere: in the log, in events, in
// the run, in the search index, in stored answers, and in summaries that covered it. The
// session falls back to the version before.
func TestDeleteLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		branches := repositories.NewBranches(s.Gorm)
		id := s.session(t).ID
		s.turns(t, id, 1)
		before := s.log(t, id)
		s.summarize(t, id, before[1])
		log := s.confess(t, id)
		s.index(t)
		s.turns(t, id, 1)
		covered := s.summarize(t, id, log[5])
		s.exec(t, "UPDATE session_summaries SET content = ?, focus = ? WHERE session_id = ? AND version = 2", "told "+secret, secret, id)
		s.exec(t, "UPDATE sessions SET conversation_summary = ? WHERE id = ?", "told "+secret, id)
		must.Get2(s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new("told")}))(t)
		s.keep(t, "k", "POST /x", `{"message":{"id":"`+string(log[5].ID)+`"}}`)
		events := s.allEvents(t, id)

		for _, m := range []core.Message{log[2], log[4], log[5]} { // the question, a tool's result, the answer
			if _, err := branches.Delete(t.Context(), ann(), id, m.ID); err != nil {
				t.Fatalf("delete #%d: %v", m.Seq, err)
			}
		}
		hits := s.remains(t)
		compare.True(t, len(hits) == 0, "got the secret still in %v", hits)
		s.wantPath(t, id, 1, 2, 7, 8)
		s.wantSummary(t, id, 2, 3)
		s.wantTombstones(t, id, events)
		if got := s.get(t, id); got.SummaryCount != 3 || got.PromptRevision <= covered.PromptRevision || got.MessageCount != 8 {
			t.Errorf("got %d summaries, revision %d, %d messages", got.SummaryCount, got.PromptRevision, got.MessageCount)
		}
		erased := must.Get(s.summaries.Get(t.Context(), ann(), id, 2))(t)
		compare.Equal(t, "version 2", []any{core.SummaryErased, ""}, []any{erased.State, erased.Content})
		n := s.count(t, "SELECT COUNT(*) FROM search_entries WHERE message_id IN ?", []core.MessageID{log[2].ID, log[3].ID, log[4].ID, log[5].ID})
		compare.True(t, n == 0, "got %d messages still in the search index", n)
		compare.Equal(t, "answers still kept", 0, s.count(t, "SELECT COUNT(*) FROM idempotency_keys WHERE body IS NOT NULL"))
		again, err := branches.Delete(t.Context(), ann(), id, log[2].ID)
		if err != nil || len(again) != 0 {
			t.Errorf("again: got events %v, error %v, want none", types(again), err)
		}
		_, _, err = branches.Pin(t.Context(), ann(), id, log[2].ID, true)
		wantNotFound(t, "pin what was deleted", err)
	})
}

// wantTombstones checks that events have their numbers and say what was deleted.
func (s *store) wantTombstones(t *testing.T, id core.SessionID, before []core.Event) {
	t.Helper()
	after := s.allEvents(t, id)
	gapless(t, "event", after, func(e core.Event) int64 { return e.Seq })
	compare.Equal(t, "types of the events", types(before), types(after[:len(before)]))
	gone := 0
	for _, e := range after {
		if e.Type != core.EventMessageCreated && e.Type != core.EventMessageUpdated {
			continue
		}
		m := decode[core.MessageData](t, e).Message
		if m.Seq < 3 || m.Seq > 6 {
			continue
		}
		gone++
		compare.True(t, m.DeletedAt != nil && m.Content == "" && len(m.ToolCalls) == 0 && m.TokenCount == 0, "event %d: got %+v, want a tombstone", e.Seq, m)
	}
	compare.Equal(t, "tombstones: want one for each message.created and each message.updated", 8, gone)
}

// Earlier copies stay in the fork, which is a separate session.
func TestDeleteSparesForks(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		branches := repositories.NewBranches(s.Gorm)
		id := s.session(t).ID
		log := s.confess(t, id)
		fork := must.Get(branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: id, MessageID: log[1].ID, Title: "copy"}))(t)
		s.index(t)
		must.Get(branches.Delete(t.Context(), ann(), id, log[1].ID))(t)
		copies := s.log(t, fork.ID)
		compare.True(t, len(copies) == 3 && strings.Contains(copies[1].ToolCalls[0].Arguments, secret) && copies[2].ToolCallID == "call-1", "got %+v, want the question, and the call with its result", copies)
		compare.Equal(t, "search entries of the fork: want its title and three messages", 4, s.count(t, "SELECT COUNT(*) FROM search_entries WHERE session_id = ?", fork.ID))
		s.wantPath(t, id, 1, 4)
	})
}

// canceledInQueue accepts the secret with a file behind another run, and cancels it.
func (s *store) canceledInQueue(t *testing.T) (session core.SessionID, unsent core.Run, file core.Blob) {
	t.Helper()
	session = s.session(t).ID
	first := s.accept(t, ask(session, "one")).Run
	file = s.upload(t, "", "a.txt", "the file")
	in := ask(session, "it is "+secret)
	in.Input.Parts = []core.Part{file.Part()}
	unsent = s.accept(t, in).Run
	compare.Equal(t, "the file of a queued message was swept", 0, s.sweep(t).Blobs)
	canceled, events, err := s.runs.RequestCancel(t.Context(), ann(), unsent.ID)
	if err != nil || canceled.Input.Content != in.Input.Content || strings.Contains(dataText(t, events[0]), secret) {
		t.Fatalf("cancel: got %+v, %v, %v", canceled.Input, events[0].Data, err)
	}
	s.finish(t, first, "answer")
	return session, unsent, file
}

// Deleting a message that was canceled while it was queued removes it completely.
func TestDeleteAMessageThatWasCanceledInTheQueue(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		branches := repositories.NewBranches(s.Gorm)
		session, unsent, _ := s.canceledInQueue(t)
		queued := decode[core.MessageData](t, s.allEvents(t, session)[2]).Message
		compare.Equal(t, "run.queued has", []any{unsent.UserMessageID, true, int64(0)}, []any{queued.ID, strings.Contains(queued.Content, secret), queued.Seq})
		s.accept(t, ask(session, "another run does not matter"))
		events, err := branches.Delete(t.Context(), ann(), session, unsent.UserMessageID)
		if err != nil || len(events) != 1 || events[0].Type != core.EventMessageUpdated {
			t.Fatalf("delete: got %v, %v, want message.updated", types(events), err)
		}
		hits := s.remains(t)
		compare.True(t, len(hits) == 0, "the secret is still in %v", hits)
		for _, e := range append(s.allEvents(t, session), events...) {
			compare.True(t, !strings.Contains(dataText(t, e), secret), "%s still has the secret", e.Type)
		}
		for _, i := range []int{2, len(s.allEvents(t, session)) - 1} {
			m := decode[core.MessageData](t, s.allEvents(t, session)[i]).Message
			compare.True(t, m.ID == queued.ID && m.DeletedAt != nil, "event %d: got %+v, want the message deleted", i, m)
		}
		run, err := s.runs.Get(t.Context(), ann(), unsent.ID)
		compare.True(t, err == nil && run.Input.DeletedAt != nil && run.Input.Empty(), "run: got %+v, %v, want it without its message", run.Input, err)
		compare.Equal(t, "swept files", 1, s.sweep(t).Blobs)
		again, err := branches.Delete(t.Context(), ann(), session, unsent.UserMessageID)
		if err != nil || len(again) != 0 {
			t.Errorf("again: got %v, %v, want nothing", types(again), err)
		}
		wantNotFound(t, "another's", compare.ErrorOf(branches.Delete(t.Context(), bob(), session, unsent.UserMessageID)))
		wantNotFound(t, "in another session", compare.ErrorOf(branches.Delete(t.Context(), ann(), s.session(t).ID, unsent.UserMessageID)))
	})
}

// The file of such a message is swept even if the message is not deleted, and does not
// count against the quota then; a message that is still queued cannot be deleted.
func TestCanceledMessageLetsItsFileGo(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session, unsent, file := s.canceledInQueue(t)
		compare.Equal(t, "swept: want the file and its content", []int{1, 0}, []int{s.sweep(t).Blobs, s.count(t, "SELECT COUNT(*) FROM blob_contents")})
		wantNotFound(t, "the file", compare.ErrorOf(s.blobs.Get(t.Context(), ann(), file.ID)))
		if _, err := repositories.NewBranches(s.Gorm).Delete(t.Context(), ann(), session, unsent.UserMessageID); err != nil {
			t.Errorf("delete without the file: %v", err)
		}
		s.accept(t, ask(session, "at work"))
		waits := s.accept(t, ask(session, "in the queue")).Run
		wantError(t, "delete what waits", compare.ErrorOf(repositories.NewBranches(s.Gorm).Delete(t.Context(), ann(), session, waits.UserMessageID)), core.ErrConflict)
	})
}

// titled creates a session with a turn and a generated title that contains the secret, and
// returns it with its messages.
func (s *store) titled(t *testing.T) (core.SessionID, []core.Message) {
	t.Helper()
	id := s.session(t).ID
	log := s.confess(t, id)
	s.giveTitle(t, id, "About "+secret, log[0].ID, log[3].ID)
	s.keep(t, string(id), "PATCH /x", `{"id":"`+string(id)+`","title":"About `+secret+`"}`)
	return id, log
}

func (s *store) giveTitle(t *testing.T, id core.SessionID, title string, of ...core.MessageID) []core.Event {
	t.Helper()
	return must.Get(s.sessions.GiveTitle(t.Context(), ann(), core.NewTitle{SessionID: id, Title: title, Of: of}))(t)
}

func (s *store) erase(t *testing.T, id core.SessionID, m core.MessageID) {
	t.Helper()
	must.Get(repositories.NewBranches(s.Gorm).Delete(t.Context(), ann(), id, m))(t)
}

// wantNoTitle checks that nothing of the title is left anywhere.
func (s *store) wantNoTitle(t *testing.T, id core.SessionID) {
	t.Helper()
	n := s.count(t, "SELECT COUNT(*) FROM session_events WHERE session_id = ? AND CAST(data AS text) LIKE ?", id, "%About "+secret+"%")
	compare.True(t, n == 0, "the title is still in %d events", n)
	if n := s.count(t, "SELECT COUNT(*) FROM search_entries WHERE session_id = ? AND message_id IS NULL", id); n > 0 {
		t.Errorf("the title is still in the search index")
	}
	if n := s.count(t, "SELECT COUNT(*) FROM idempotency_keys WHERE key = ? AND body IS NOT NULL", string(id)); n > 0 {
		t.Errorf("the title is still in an answer that is kept")
	}
}

// A generated title is erased with its message, also from the events and the index; the
// next answer generates a new one.
func TestDeleteTakesTheTitle(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		for name, which := range map[string]int{"question": 0, "answer": 3, "call": 1} {
			id, log := s.titled(t)
			s.erase(t, id, log[which].ID)
			got := s.get(t, id)
			compare.True(t, got.Title == "" && got.TitledAt == nil, "%s: got title %q, at %v, want none", name, got.Title, got.TitledAt)
			s.wantNoTitle(t, id)
			last := s.allEvents(t, id)
			compare.Equal(t, name+": watchers are told the title", "", decode[core.SessionData](t, last[len(last)-1]).Session.Title)
			if events := s.giveTitle(t, id, "Another", log[0].ID); which == 0 && len(events) > 0 {
				t.Errorf("a title was made of what was deleted: %v", events)
			}
			s.turns(t, id, 1)
			log = s.log(t, id)
			s.giveTitle(t, id, "Another", log[len(log)-2].ID)
			compare.Equal(t, name+": title after the next answer", "Another", s.get(t, id).Title)
		}
	})
}

// A title that a user set stays, but an earlier generated one is erased from the events.
// Deleting another turn does not affect the title.
func TestDeleteSparesTitles(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id, log := s.titled(t)
		must.Get2(s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new("Mine")}))(t)
		s.erase(t, id, log[0].ID)
		got := s.get(t, id)
		compare.True(t, got.Title == "Mine" && got.TitledAt != nil, "got title %q, at %v, want the user's own", got.Title, got.TitledAt)
		n := s.count(t, "SELECT COUNT(*) FROM session_events WHERE session_id = ? AND CAST(data AS text) LIKE ?", id, "%About "+secret+"%")
		compare.True(t, n == 0, "the title of before is still in %d events", n)
		other, _ := s.titled(t)
		s.turns(t, other, 1)
		log = s.log(t, other)
		s.erase(t, other, log[len(log)-1].ID)
		compare.Contains(t, "title: want it as it was: another turn was deleted", secret, s.get(t, other).Title)
	})
}

// userDeletion is the deletion of a user of ann's.
func userDeletion(user string) core.Deletion {
	return core.Deletion{ID: core.NewID[core.DeletionID](), Owner: "ann", Kind: core.DeleteUser, User: user, UserHash: core.SecretHash(user), Actor: "api:web", CreatedAt: core.Now()}
}

// One process executes a deletion, and another one after the lease of the first has
// expired; the user's name is cleared when it is finished.
func TestDeletions(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		ctx, deletions := t.Context(), repositories.NewDeletions(s.Gorm)
		first := must.Get(deletions.Create(ctx, userDeletion("carol")))(t)
		again := must.Get(deletions.Create(ctx, userDeletion("carol")))(t)
		compare.Equal(t, "accepted again: want the first one", []any{first.ID, core.DeletionPending}, []any{again.ID, again.Status})
		compare.Error(t, "the user's own deletion", nil, compare.ErrorOf(deletions.Get(ctx, carol(), first.ID)))
		for _, other := range []core.Tenant{bob(), {Owner: "ann", User: "dave"}} {
			_, err := deletions.Get(ctx, other, first.ID)
			wantNotFound(t, "another's deletion", err)
		}

		job, err := deletions.Claim(ctx, "one/1")
		if err != nil || job.ID != first.ID || job.User != "carol" || job.Attempts != 1 || job.Status != core.DeletionRunning {
			t.Fatalf("claimed: %+v, %v", job, err)
		}
		_, err = deletions.Claim(ctx, "two/1")
		wantNotFound(t, "a second claim", err)
		job.Plan, job.RowsTotal = &core.DeletionPlan{Sessions: []core.SessionID{"a"}}, 7
		must.Do(t, deletions.SavePlan(ctx, job))
		later, err := deletions.Claim(ctx, "one/2") // the same replica, started again
		compare.True(t, err == nil && later.Attempts == 2 && later.RowsTotal == 7 && later.Plan != nil && later.Plan.Sessions[0] == "a", "after a restart: %+v, %v", later, err)
		wantError(t, "renew a lease that was lost", deletions.Renew(ctx, job), core.ErrStale)
		later.Error = "the disk is full"
		must.Do(t, deletions.Retry(ctx, later, time.Minute))
		_, err = deletions.Claim(ctx, "two/1")
		wantNotFound(t, "a claim before its time", err)
		waits := must.Get(deletions.Get(ctx, ann(), first.ID))(t)
		compare.Equal(t, "waiting", []any{"the disk is full", core.DeletionPending}, []any{waits.Error, waits.Status})
		s.exec(t, "UPDATE deletions SET due_at = '2000-01-01 00:00:00+00:00'")
		last, err := deletions.Claim(ctx, "two/1")
		if err != nil || last.Attempts != 3 {
			t.Fatalf("claimed when it is due: %+v, %v", last, err)
		}
		last.Report = &core.PurgeReport{Sessions: []core.SessionID{}, Tables: []core.PurgedTable{{Table: "messages", Removed: 7}}, Notes: []string{}}
		must.Do(t, deletions.Finish(ctx, last))
		done, err := deletions.Get(ctx, carol(), first.ID)
		compare.True(t, err == nil && done.Status == core.DeletionSucceeded && done.User == "" && done.Plan == nil && done.Error == "" && done.Report.Tables[0].Removed == 7, "done: %+v, %v", done, err)
		next := must.Get(deletions.Create(ctx, userDeletion("carol")))(t)
		compare.True(t, next.ID != first.ID, "accepted after the first is done: %+v, want a new one", next)
		s.exec(t, "UPDATE deletions SET finished_at = '2020-01-01 00:00:00+00:00' WHERE finished_at IS NOT NULL")
		must.Do(t, deletions.Sweep(ctx, time.Hour))
		_, err = deletions.Get(ctx, ann(), first.ID)
		wantNotFound(t, "one that was done long ago", err)
	})
}
