package repositories_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
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

// large puts messages of 300 KiB into a new session, which have it in any of their texts,
// with short ones between them.
func (s *store) large(t *testing.T) core.SessionID {
	t.Helper()
	id := s.session(t).ID
	text := func(n int) string { return strings.Repeat(fmt.Sprintf("%09d ", n), 30<<10) }
	var list []core.Message
	for n := range 8 {
		question, answer := said(core.RoleUser, fmt.Sprintf("question %d", n)), said(core.RoleAssistant, "")
		switch n % 4 {
		case 0:
			answer.Content = text(n)
		case 1:
			answer.ToolCalls = []core.ToolCall{{ID: "a", Name: "write", Arguments: text(n), Signature: "s"}, {ID: "b", Name: "read", Arguments: "{}"}}
		case 2:
			answer.Parts = []core.Part{{Type: "reasoning", Text: text(n), Signature: "s", Origin: "o"}, {Type: "file", MediaType: "text/plain", Name: "a.txt", Size: 7}}
		case 3:
			answer.Metadata = json.RawMessage(`{"note": "` + text(n) + `"}`)
		}
		list = append(list, question, answer)
	}
	list[2].Pinned, list[3].Pinned, list[14].Pinned = true, true, true
	s.append(t, id, true, list...)
	return id
}

// A conversation of any size is loaded with the newest MiB of its texts, in one
// statement; what the older messages are but for their texts is there.
func TestConversationLoadsTheNewestTexts(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.large(t)
		before := s.Statements()
		got := s.log(t, id)
		if n := s.Statements() - before; n != 1 || len(got) != 16 {
			t.Fatalf("got %d messages by %d statements, want 16 by one", len(got), n)
		}
		var ids []core.MessageID
		for _, m := range got {
			ids = append(ids, m.ID)
		}
		whole := must.Get(s.messages.GetMessages(t.Context(), ann(), id, ids))(t)
		// Three of 300 KiB fit, and the short ones between them.
		want := append([]core.Message(nil), whole...)
		for i := range 10 {
			want[i] = want[i].WithoutTexts()
		}
		for i := range got {
			size := want[i].Unloaded
			if got[i].Unloaded < size || got[i].Unloaded > size+size/100+200 {
				t.Errorf("message %d: %d bytes are said to be unloaded, want about %d", i+1, got[i].Unloaded, size)
			}
			want[i].Unloaded = got[i].Unloaded
		}
		diff := cmp.Diff(want, got)
		compare.True(t, diff == "", "messages (-want +got):\n%.4000s", diff)
		if m := whole[3]; len(m.ToolCalls[0].Arguments) != 300<<10 || m.ToolCalls[0].Signature != "s" || m.Unloaded != 0 {
			t.Errorf("got %d bytes of arguments, want the message whole", len(m.ToolCalls[0].Arguments))
		}
	})
}

// The same of the pinned messages, and of those after a cursor: each question has its
// own newest texts.
func TestPinnedMessagesLoadTheNewestTexts(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.large(t)
		pinned, err := s.messages.Pinned(t.Context(), ann(), id)
		must.True(t, err == nil && len(pinned) == 3, "got %d pinned messages, %v, want 3", len(pinned), err)
		for i, m := range pinned {
			compare.True(t, m.Unloaded == 0 && m.TextBytes() != 0, "pinned message %d: %d bytes are not loaded, want all", i, m.Unloaded)
		}
		log := s.log(t, id)
		after := must.Get(s.messages.GetMessagesAfter(t.Context(), ann(), id, log[9].ID))(t)
		compare.True(t, len(after) == 6 && after[0].Unloaded == 0, "got %d messages after the cursor, want 6, all whole: they have less than a MiB", len(after))
	})
}

// A message larger than the limit is not loaded.
func TestOneMessageLargerThanWhatIsLoaded(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		s.append(t, id, true, said(core.RoleUser, "short"), said(core.RoleUser, strings.Repeat("x", 2<<20)), said(core.RoleUser, "short, too"))
		got := s.log(t, id)
		if got[0].Unloaded != len("short") || got[1].Unloaded != 2<<20 || got[1].Content != "" || got[2].Content != "short, too" {
			t.Errorf("got %d, %d and %d bytes left, want the newest message alone", got[0].Unloaded, got[1].Unloaded, got[2].Unloaded)
		}
	})
}

// Messages are found by their ids on any branch of their own session; deleted ones and
// those of other sessions are not.
func TestGetMessages(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id, all := s.branched(t)
		other := s.session(t).ID
		s.turns(t, other, 1)
		ids := []core.MessageID{s.log(t, other)[0].ID}
		for _, m := range all {
			ids = append(ids, m.ID)
			for range 30 { // together more than one statement takes
				ids = append(ids, core.NewID[core.MessageID]())
			}
		}
		got, err := s.messages.GetMessages(t.Context(), ann(), id, ids)
		want := []int64{1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23}
		if diff := cmp.Diff(want, seqs(got)); err != nil || diff != "" {
			t.Errorf("messages (-want +got): %v\n%s", err, diff)
		}
	})
}

// Messages get the author and the time of a recording, each where it has one, and a search by
// either finds them, also if they were indexed before.
func TestSetRecorded(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id, day := s.session(t).ID, time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)
		var messages []core.Message
		for range 3 {
			messages = append(messages, core.Message{Role: core.RoleUser, Content: "The canoe is dry.", Author: "Cid", CreatedAt: day.AddDate(0, 0, 9)})
			for range 5 {
				messages = append(messages, core.Message{Role: core.RoleAssistant, Content: "Good.", CreatedAt: day.AddDate(0, 0, 9)})
			}
		}
		must.Do(t, repositories.Fillup(t.Context(), s.Gorm, id, messages))
		s.index(t)
		recorded := []core.Message{{Seq: 7, Author: "Ann"}, {Seq: 8}, {Seq: 13, CreatedAt: day}}
		must.Do(t, s.messages.SetRecorded(t.Context(), ann(), id, recorded))
		for question, want := range map[string]int64{"What did Ann say about the canoe?": 7, "the canoe on 10 January 2026": 13} {
			got := s.ranked(t, core.SearchQuery{Text: question, SessionID: id})
			compare.True(t, len(got) != 0 && got[0].Seq == want, "%s: got %v first, want message %d", question, got, want)
		}
		page := must.Get(s.messages.List(t.Context(), ann(), id, core.MessageQuery{PageQuery: core.PageQuery{Limit: 50}}))(t)
		for _, m := range page.Items {
			author, at := messages[m.Seq-1].Author, messages[m.Seq-1].CreatedAt
			switch m.Seq {
			case 7:
				author = "Ann"
			case 13:
				at = day
			}
			compare.True(t, m.Author == author && m.CreatedAt.Equal(at), "message %d: got %q at %s, want %q at %s", m.Seq, m.Author, m.CreatedAt, author, at)
		}
		compare.Error(t, "another owner", core.ErrNotFound, s.messages.SetRecorded(t.Context(), bob(), id, recorded))
	})
}

// PostgreSQL knows nothing yet of a table that was just filled: the sizes of the texts are computed once all the same.
func TestNewConversationIsReadOnce(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		if s.Dialect() == "sqlite" {
			return // has no such statistics
		}
		id := s.session(t).ID
		s.turns(t, id, 150)
		for _, q := range s.recorded(t, func() { s.log(t, id) }) {
			plan := s.explain(t, "EXPLAIN (ANALYZE, TIMING OFF) ", q)
			compare.True(t, !regexp.MustCompile(`WindowAgg.*loops=(\d\d|[2-9])`).MatchString(plan), "the sizes are computed for each row:\n%s", plan)
		}
	})
}
