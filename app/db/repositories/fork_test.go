package repositories_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// beginFork copies the first n messages of a session.
func (s *store) beginFork(t *testing.T, session core.SessionID, n int) (core.SessionID, func() error) {
	t.Helper()
	fork, finish := must.Get2(repositories.BeginFork(t.Context(), repositories.NewBranches(s.Gorm), ann(), core.ForkSession{SessionID: session, Title: "a copy of rope"}, n))(t)
	return fork, func() error { return finish(t.Context()) }
}

// left counts the rows of a session in all tables.
func (s *store) left(t *testing.T, id core.SessionID) (n int) {
	t.Helper()
	for _, table := range repositories.PurgedTables() {
		switch table {
		case "sessions":
			n += s.count(t, "SELECT COUNT(*) FROM sessions WHERE id = ?", id)
		case "search_entries", "approvals", "session_events", "session_summaries", "messages", "deliveries", "runs", "blob_references", "blobs", "model_calls":
			n += s.count(t, "SELECT COUNT(*) FROM "+table+" WHERE session_id = ?", id)
		}
	}
	return n
}

// A fork becomes visible when it is complete. Meanwhile its source continues, as does a
// second fork, and messages added to the source are not copied.
func TestForkIsHiddenUntilItIsComplete(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		s.append(t, id, true, history(40, "rope")...)
		fork, finish := s.beginFork(t, id, 20)
		s.checkHidden(t, fork)
		s.turns(t, id, 1)
		compare.Error(t, "another fork", nil, compare.ErrorOf(repositories.NewBranches(s.Gorm).Fork(t.Context(), ann(), core.ForkSession{SessionID: id})))
		compare.Equal(t, "recovered sessions while the fork goes on", 0, s.recover(t))
		must.Do(t, finish())
		log := s.log(t, fork)
		gapless(t, "messages", log, func(m core.Message) int64 { return m.Seq })
		session := must.Get(s.sessions.Get(t.Context(), ann(), fork))(t)
		compare.Equal(t, "messages, counted, last of them, importing", []any{40, 40, int64(40), false}, []any{len(log), session.MessageCount, session.LastSeq, session.Importing})
		compare.Equal(t, "the search finds the sessions: want the copy", 1, len(s.titlesWith(t, ann(), "copy")))
		s.turns(t, fork, 1)
	})
}

// checkHidden checks that nobody sees the session.
func (s *store) checkHidden(t *testing.T, id core.SessionID) {
	t.Helper()
	_, err := s.sessions.Get(t.Context(), ann(), id)
	wantNotFound(t, "the session", err)
	list, err := s.sessions.List(t.Context(), ann(), core.SessionQuery{Archived: true})
	must.Do(t, err)
	for _, one := range list.Items {
		if one.ID == id {
			t.Error("the session is in the list")
		}
	}
	_, err = s.messages.GetMessagesAfter(t.Context(), ann(), id, "")
	wantNotFound(t, "its log", err)
	_, err = s.messages.List(t.Context(), ann(), id, core.MessageQuery{AllBranches: true})
	wantNotFound(t, "its messages", err)
	_, err = s.summaries.List(t.Context(), ann(), id, core.PageQuery{})
	wantNotFound(t, "its summaries", err)
	_, err = s.runs.List(t.Context(), ann(), id, core.PageQuery{})
	wantNotFound(t, "its runs", err)
	_, err = s.runs.Accept(t.Context(), ann(), ask(id, "hello?"))
	wantNotFound(t, "a question", err)
	_, _, err = s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new("x")})
	wantNotFound(t, "a change", err)
	wantNotFound(t, "archiving", s.archive(t.Context(), ann(), id))
	_, err = s.events.Last(t.Context(), ann(), id)
	wantNotFound(t, "its feed", err)
	for _, hit := range s.search(t, ann(), core.SearchQuery{Text: "rope"}).Items {
		if hit.SessionID == id {
			t.Error("the search finds its messages")
		}
	}
	if got := s.titlesWith(t, ann(), "copy"); len(got) > 0 {
		t.Errorf("the search finds the sessions %q", got)
	}
}

// An incomplete fork is removed.
func TestAbandonedForkIsRemoved(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		blob := s.upload(t, "", "a.txt", "shared")
		withFile := said(core.RoleUser, "a rope with a file")
		withFile.Parts = []core.Part{{Type: core.PartFile, BlobID: blob.ID, Name: "a.txt"}}
		s.append(t, id, true, withFile, said(core.RoleAssistant, "rope"), said(core.RoleUser, "rope"))
		fork, finish := s.beginFork(t, id, 2)
		s.lapse(t)
		compare.Equal(t, "recovered sessions", 1, s.recover(t))
		wantError(t, "the fork that lost its lease", finish(), core.ErrStale)
		compare.Equal(t, "rows are left of the fork", 0, s.left(t, fork))
		if got := s.log(t, id); len(got) != 3 || got[0].Parts[0].BlobID != blob.ID || s.sweep(t).Blobs != 0 {
			t.Errorf("the source has lost something: %+v", got)
		}
	})
}

// A message that is deleted while its session is forked is copied whole or not at all.
func TestDeletedWhileItIsForked(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		branches := repositories.NewBranches(s.Gorm)
		for _, tt := range []struct {
			name string
			seq  int
			want error
		}{{"copied before", 1, nil}, {"not copied yet", 3, core.ErrStale}} {
			id := s.session(t).ID
			s.append(t, id, true, history(4, "rope")...)
			log := s.log(t, id)
			s.summarize(t, id, log[2])
			fork, finish := s.beginFork(t, id, 2)
			must.Get(branches.Delete(t.Context(), ann(), id, log[tt.seq-1].ID))(t)
			wantError(t, tt.name, finish(), tt.want)
			if tt.want != nil {
				continue
			}
			copied, err := s.sessions.Get(t.Context(), ann(), fork)
			if err != nil || copied.ConversationSummary != nil || len(s.log(t, fork)) != 4 {
				t.Errorf("got %+v, %v, want the copy without the summary, which was erased", copied, err)
			}
		}
	})
}
