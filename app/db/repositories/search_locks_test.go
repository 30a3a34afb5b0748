package repositories_test

import (
	"context"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
)

// A session is indexed while a turn holds its row, so no turn waits for the index.
func TestIndexWithoutTheSession(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	id := s.session(t).ID
	s.turns(t, id, 1)
	release := s.hog(t, id)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	index := repositories.NewSearch(s.Gorm)
	if n, _, err := index.IndexNext(ctx); err != nil || n != 2 {
		t.Errorf("beside a turn: indexed %d messages, %v, want 2", n, err)
	}
	if left, err := index.Unindexed(ctx); err != nil || left != 0 {
		t.Errorf("beside a turn: %d messages are left, %v, want 0", left, err)
	}
	release()
	s.index(t)
	if n := s.count(t, "SELECT COUNT(*) FROM sessions WHERE indexed_seq < last_seq"); n != 0 {
		t.Errorf("after the turn: %d sessions are looked at again and again", n)
	}
}

// What changes indexed messages waits for the indexer, which has read them as they were before.
func TestChangesWaitForTheIndex(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	branches := repositories.NewBranches(s.Gorm)
	for name, change := range map[string]func(context.Context, core.SessionID, core.MessageID) error{
		"delete": func(ctx context.Context, id core.SessionID, m core.MessageID) error {
			_, err := branches.Delete(ctx, ann(), id, m)
			return err
		},
		"revise": func(ctx context.Context, id core.SessionID, m core.MessageID) error {
			_, _, err := branches.Revise(ctx, ann(), core.ReviseMessage{SessionID: id, MessageID: m, Content: "new"})
			return err
		},
		"rename": func(ctx context.Context, id core.SessionID, _ core.MessageID) error {
			title := "bees"
			_, _, err := s.sessions.Update(ctx, ann(), id, core.SessionPatch{Title: &title})
			return err
		},
		"purge": func(ctx context.Context, id core.SessionID, _ core.MessageID) error {
			_, err := repositories.NewPurges(s.Gorm).Session(ctx, id, true)
			return err
		},
	} {
		id := s.session(t).ID
		s.turns(t, id, 1)
		asked := s.log(t, id)[0].ID
		indexer := s.Gorm.WithContext(t.Context()).Begin()
		if err := indexer.Exec("SELECT seq FROM session_readers WHERE session_id = ? FOR UPDATE", id).Error; err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if err := change(ctx, id, asked); err == nil {
			t.Errorf("%s: did not wait for the indexer", name)
		}
		cancel()
		s.get(t, id) // not hidden by a purge that waits
		indexer.Rollback()
		if err := change(t.Context(), id, asked); err != nil {
			t.Errorf("%s: after the indexer: %v", name, err)
		}
	}
}

// A search that needs the index waits for who holds its session, and finds all then.
func TestSearchesWaitForTheIndex(t *testing.T) {
	t.Parallel()
	s := open(dbtest.Postgres(t))
	id := s.session(t).ID
	s.turns(t, id, 1)
	other := s.Gorm.WithContext(t.Context()).Begin()
	if err := other.Exec("SELECT seq FROM session_readers WHERE session_id = ? FOR UPDATE", id).Error; err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	time.AfterFunc(300*time.Millisecond, func() { other.Rollback() })
	q := core.SearchQuery{Text: s.log(t, id)[0].Content, SessionID: id, Sort: core.SortNewest}
	page, err := repositories.NewSearch(s.Gorm).Messages(t.Context(), ann(), q)
	if err != nil || len(page.Items) == 0 || page.Indexing || time.Since(begin) < 300*time.Millisecond {
		t.Errorf("got %d hits after %v, indexing %t, %v, want the message after the other transaction", len(page.Items), time.Since(begin), page.Indexing, err)
	}
}
