package repositories_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
	"bobbin/tests/seed"
)

// branched returns a session of 24 messages, some of them on another branch, some
// deleted, some pinned.
func (s *store) branched(t *testing.T) (core.SessionID, []core.Message) {
	t.Helper()
	id := s.session(t).ID
	s.turns(t, id, 12)
	all := s.log(t, id)
	mark := func(column, value string, seqs ...int64) {
		s.exec(t, "UPDATE messages SET "+column+" = "+value+" WHERE session_id = ? AND seq IN ?", id, seqs)
	}
	mark("on_path", "false", 3, 4, 11, 17, 18, 19)
	mark("deleted_at", "created_at", 6, 7, 17, 24)
	mark("pinned", "true", 1, 4, 6, 9, 14)
	return id, all
}

// seqs are the numbers of messages.
func seqs(list []core.Message) []int64 {
	out := make([]int64, 0, len(list))
	for _, m := range list {
		out = append(out, m.Seq)
	}
	return out
}

// what branched leaves of the conversation
func conversation() []int64 {
	return []int64{1, 2, 5, 8, 9, 10, 12, 13, 14, 15, 16, 20, 21, 22, 23}
}

func TestConversationQuestions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id, all := s.branched(t)
		pinned, err := s.messages.Pinned(t.Context(), ann(), id)
		if diff := cmp.Diff([]int64{1, 9, 14}, seqs(pinned)); err != nil || diff != "" {
			t.Errorf("pinned (-want +got): %v\n%s", err, diff)
		}
		n, err := s.messages.CountOnPath(t.Context(), ann(), id)
		if err != nil || n != len(conversation()) {
			t.Errorf("count: got %d, %v, want %d", n, err, len(conversation()))
		}
		for _, m := range all { // deleted ones and other branches, too
			got, err := s.messages.Get(t.Context(), ann(), id, m.ID)
			if err != nil || got.Seq != m.Seq {
				t.Errorf("get %d: got %d, %v", m.Seq, got.Seq, err)
			}
		}
		_, err = s.messages.Get(t.Context(), ann(), s.session(t).ID, all[0].ID)
		wantNotFound(t, "message of another session", err)
	})
}

// Pages of any size in either direction, concatenated, are the whole list in
// order, without a repetition, within any bounds.
func TestListMessagesPages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id, _ := s.branched(t)
		seed.Check(t, func(rt *rapid.T) {
			q := core.MessageQuery{
				PageQuery:   core.PageQuery{Limit: rapid.IntRange(1, 26).Draw(rt, "limit")},
				Before:      rapid.Int64Range(0, 27).Draw(rt, "before"),
				After:       rapid.Int64Range(0, 26).Draw(rt, "after"),
				AllBranches: rapid.Bool().Draw(rt, "all branches"),
			}
			want := conversation()
			if q.AllBranches {
				want = []int64{1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23}
			}
			want = slices.DeleteFunc(want, func(seq int64) bool { return seq <= q.After || q.Before > 0 && seq >= q.Before })
			got := s.listMessages(t, id, q)
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("%+v (-want +got):\n%s", q, diff)
			}
		})
	})
}

// listMessages returns the numbers of all pages in ascending order. Each page is
// ascending; with Before the pages come from the end.
func (s *store) listMessages(t *testing.T, id core.SessionID, q core.MessageQuery) []int64 {
	t.Helper()
	out := []int64{}
	for {
		page, err := s.messages.List(t.Context(), ann(), id, q)
		if err != nil {
			t.Fatalf("list %+v: %v", q, err)
		}
		if q.Before > 0 {
			out = append(seqs(page.Items), out...)
		} else {
			out = append(out, seqs(page.Items)...)
		}
		if page.NextCursor == nil {
			return out
		}
		if len(page.Items) != q.Limit {
			t.Fatalf("page of %+v: got %d items and a next page", q, len(page.Items))
		}
		q.Cursor = *page.NextCursor
	}
}

// A page that was begun stays right while messages are added.
func TestPagesWhileMessagesCome(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 3)
		first, err := s.messages.List(t.Context(), ann(), id, core.MessageQuery{PageQuery: core.PageQuery{Limit: 4}})
		if err != nil || first.NextCursor == nil {
			t.Fatalf("first page: %+v, %v", first, err)
		}
		s.turns(t, id, 1)
		rest, err := s.messages.List(t.Context(), ann(), id, core.MessageQuery{PageQuery: core.PageQuery{Limit: 50, Cursor: *first.NextCursor}})
		if diff := cmp.Diff([]int64{5, 6, 7, 8}, seqs(rest.Items)); err != nil || diff != "" {
			t.Errorf("rest (-want +got): %v\n%s", err, diff)
		}
	})
}

func TestListSummariesAndRunsPages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 7)
		log := s.log(t, id)
		for i := range 7 {
			if _, _, err := s.sessions.ApplyContext(t.Context(), ann(), pathChange(s.sessionOf(t, id), fmt.Sprint(i), log[0], log[i])); err != nil {
				t.Fatal(err)
			}
		}
		want := []int64{7, 6, 5, 4, 3, 2, 1}
		for limit := 1; limit <= 8; limit++ {
			versions := allPages(t, limit, func(cursor string) (core.Page[core.Summary], error) {
				return s.summaries.List(t.Context(), ann(), id, core.PageQuery{Limit: limit, Cursor: cursor})
			}, func(v core.Summary) int64 { return int64(v.Version) })
			if diff := cmp.Diff(want, versions); diff != "" {
				t.Errorf("versions by %d (-want +got):\n%s", limit, diff)
			}
			queue := allPages(t, limit, func(cursor string) (core.Page[core.Run], error) {
				return s.runs.List(t.Context(), ann(), id, core.PageQuery{Limit: limit, Cursor: cursor})
			}, func(v core.Run) int64 { return v.QueueSeq })
			if diff := cmp.Diff(want, queue); diff != "" {
				t.Errorf("runs by %d (-want +got):\n%s", limit, diff)
			}
		}
	})
}

func TestBadPages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.turns(t, id, 2)
		page, err := s.runs.List(t.Context(), ann(), id, core.PageQuery{Limit: 1})
		if err != nil || page.NextCursor == nil {
			t.Fatalf("runs: %+v, %v", page, err)
		}
		bad := map[string]core.PageQuery{
			"not base64":        {Cursor: "%%%"},
			"not JSON":          {Cursor: "aGVsbG8"},
			"of another list":   {Cursor: *page.NextCursor},
			"id that is none":   {Cursor: "eyJsIjoic2Vzc2lvbnMiLCJuIjoxLCJpIjoieCJ9"}, // {"l":"sessions","n":1,"i":"x"}
			"negative limit":    {Limit: -1},
			"limit over 200":    {Limit: core.MaxPageLimit + 1},
			"NUL in the cursor": {Cursor: "\x00"},
		}
		for name, q := range bad {
			_, err := s.sessions.List(t.Context(), ann(), core.SessionQuery{PageQuery: q})
			wantError(t, name+": sessions", err, core.ErrInvalid)
			_, err = s.messages.List(t.Context(), ann(), id, core.MessageQuery{PageQuery: q})
			wantError(t, name+": messages", err, core.ErrInvalid)
			_, err = s.summaries.List(t.Context(), ann(), id, q)
			wantError(t, name+": summaries", err, core.ErrInvalid)
			if name != "of another list" {
				_, err = s.runs.List(t.Context(), ann(), id, q)
				wantError(t, name+": runs", err, core.ErrInvalid)
			}
		}
	})
}
