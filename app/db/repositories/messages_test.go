package repositories_test

import (
	"encoding/json"
	"errors"
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

func said(role core.Role, content string) core.Message {
	return core.Message{Role: role, Content: content, Source: core.SourceAPI, TokenCount: 5}
}

func (s *store) append(t *testing.T, session core.SessionID, imported bool, list ...core.Message) core.Appended {
	t.Helper()
	return must.Get(s.messages.Append(t.Context(), ann(), core.AppendMessages{SessionID: session, Messages: list, Import: imported}))(t)
}

// A message without a run is in the log immediately, at the end of the path.
func TestAppendPutsAMessageIntoTheLog(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := s.session(t)
		s.turns(t, session.ID, 1)
		m := said(core.RoleUser, "seeded")
		m.ClientMessageID = "c-9"
		got := s.append(t, session.ID, false, m)
		log := s.log(t, session.ID)
		compare.Equal(t, "log", got.Messages, log[2:])
		if log[2].Seq != 3 || log[2].ParentID != log[1].ID || log[2].Status != core.MessageComplete || log[2].RunID != "" {
			t.Errorf("got %+v, want seq 3 after the answer, complete, without a run", log[2])
		}
		compare.Equal(t, "events", []core.EventType{core.EventMessageCreated}, types(got.Events))
		gapless(t, "events", s.allEvents(t, session.ID), func(e core.Event) int64 { return e.Seq })

		again := s.append(t, session.ID, false, m)
		compare.True(t, again.Repeated && again.Messages[0].ID == got.Messages[0].ID && len(s.log(t, session.ID)) == 3, "got %+v, want the message of the first time and nothing new", again)
		// What comes after is a turn like any other.
		next := s.accept(t, ask(session.ID, "and now?"))
		compare.True(t, next.Message.Seq == 4 && next.Message.ParentID == log[2].ID, "got %+v, want the next question after the seeded message", next.Message)
	})
}

// Many messages come in as one transaction with one event.
func TestAppendManyIsOneEvent(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		for _, n := range []int{0, 1, 100, 101, 1234} {
			session := s.session(t)
			var list []core.Message
			for i := range n {
				list = append(list, said(core.RoleUser, fmt.Sprint("message ", i)))
			}
			got := s.append(t, session.ID, true, list...)
			log := s.log(t, session.ID)
			gapless(t, "messages", log, func(m core.Message) int64 { return m.Seq })
			compare.Equal(t, "messages, counted, last and first of them", []any{n, n, int64(n), int64(1)}, []any{len(log), got.Session.MessageCount, got.LastSeq, got.FirstSeq})
			for i, m := range log {
				if want := fmt.Sprint("message ", i); m.Content != want || i > 0 && m.ParentID != log[i-1].ID {
					t.Fatalf("message %d: got %q after %s, want %q after the one before", i, m.Content, m.ParentID, want)
				}
			}
			want := n
			if n > 100 {
				want = 1
				data := decode[core.ImportedData](t, got.Events[0])
				if data != (core.ImportedData{Imported: n, FirstSeq: 1, LastSeq: int64(n)}) || got.Events[0].Type != core.EventMessagesImported {
					t.Errorf("got event %s %+v, want one messages.imported for all", got.Events[0].Type, data)
				}
			}
			compare.Equal(t, fmt.Sprintf("%d messages: events", n), want, len(got.Events))
		}
	})
}

func TestAppendIsRefused(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		try := func(tenant core.Tenant, session core.SessionID, imported bool, list ...core.Message) error {
			_, err := s.messages.Append(t.Context(), tenant, core.AppendMessages{SessionID: session, Messages: list, Import: imported})
			return err
		}
		session := s.session(t)
		hello := said(core.RoleUser, "hello")
		wantNotFound(t, "another's session", try(bob(), session.ID, false, hello))
		wantNotFound(t, "another user's session", try(carol(), session.ID, false, hello))
		wantNotFound(t, "no session", try(ann(), "nonsense", false, hello))

		in := ask(session.ID, "q")
		in.ClientMessageID = "run-1"
		running := s.accept(t, in)
		wantError(t, "while a run is active", try(ann(), session.ID, false, hello), core.ErrConflict)
		wantError(t, "import while a run is active", try(ann(), session.ID, true, hello), core.ErrConflict)
		s.finish(t, running.Run, "a")

		named := hello
		named.ClientMessageID = "run-1"
		must.Do(t, try(ann(), session.ID, false, named)) // it is there
		wantError(t, "import of a known id", try(ann(), session.ID, true, hello, named), core.ErrConflict)
		named.ClientMessageID = "\x00"
		wantError(t, "an id that cannot be stored", try(ann(), session.ID, false, named), core.ErrInvalid)

		broken := said(core.RoleUser, "nul \x00")
		wantError(t, "all or nothing", try(ann(), session.ID, true, hello, broken), core.ErrInvalid)
		compare.Equal(t, "messages in the log: want only the turn", 2, len(s.log(t, session.ID)))
		must.Do(t, s.archive(t.Context(), ann(), session.ID))
		wantError(t, "archived", try(ann(), session.ID, false, hello), core.ErrConflict)
	})
}

// A tool's message must answer a call of the assistant's last message.
func TestAppendToolResults(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := s.session(t)
		result := func(id string) core.Message {
			m := said(core.RoleTool, "result of "+id)
			m.ToolCallID = id
			return m
		}
		refused := func(what, id string) {
			t.Helper()
			_, err := s.messages.Append(t.Context(), ann(), core.AppendMessages{SessionID: session.ID, Messages: []core.Message{result(id)}})
			wantError(t, what, err, core.ErrUnprocessable)
		}
		refused("in an empty session", "a")
		calls := said(core.RoleAssistant, "")
		calls.ToolCalls = []core.ToolCall{{ID: "a", Name: "x", Arguments: "{}"}, {ID: "b", Name: "y", Arguments: "{}"}}
		s.append(t, session.ID, false, said(core.RoleUser, "q"))
		s.append(t, session.ID, false, calls)
		refused("an id that no call has", "c")
		s.append(t, session.ID, false, result("b"))
		refused("a second result", "b")
		s.append(t, session.ID, false, said(core.RoleSystem, "a note in between"))
		s.append(t, session.ID, false, result("a"))
		s.append(t, session.ID, false, said(core.RoleUser, "next"))
		refused("behind another message", "a")
		compare.Equal(t, "messages", 6, len(s.log(t, session.ID)))
	})
}

// Concurrent appends get consecutive numbers, and each its own parent.
func TestAppendConcurrently(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := s.session(t)
		race(8, func(i int) {
			for k := range 5 {
				m := said(core.RoleUser, "x")
				m.ClientMessageID = fmt.Sprintf("c-%d", (i/2)*5+k) // each one comes twice
				compare.Error(t, "append", nil, compare.ErrorOf(s.messages.Append(t.Context(), ann(), core.AppendMessages{SessionID: session.ID, Messages: []core.Message{m}})))
			}
		})
		log := s.log(t, session.ID)
		gapless(t, "messages", log, func(m core.Message) int64 { return m.Seq })
		parents := map[core.MessageID]bool{}
		for _, m := range log {
			parents[m.ParentID] = true
		}
		compare.Equal(t, "messages with parents: want 20 of each", []int{20, 20}, []int{len(log), len(parents)})
	})
}

// Messages of a branch come after the message that is named, or begin the conversation anew, and
// what they replace on the current path stays in the log.
func TestAppendBranch(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := s.session(t)
		s.turns(t, session.ID, 2)
		before := s.log(t, session.ID)
		for after, length := range map[core.MessageID]int{before[1].ID: 4, "": 2} {
			in := core.AppendMessages{SessionID: session.ID, Branch: &after, Messages: []core.Message{said(core.RoleUser, "other"), said(core.RoleAssistant, "answer")}}
			got := must.Get(s.messages.Append(t.Context(), ann(), in))(t)
			m := got.Messages[0]
			compare.Equal(t, "parent, on path", []any{after, true}, []any{m.ParentID, m.OnPath})
			compare.Equal(t, fmt.Sprintf("after %q: messages on the path", after), length, len(s.log(t, session.ID)))
			replaced := must.Get(s.messages.Get(t.Context(), ann(), session.ID, before[3].ID))(t)
			compare.True(t, !replaced.OnPath && replaced.Content == before[3].Content, "after %q: the replaced message is %+v", after, replaced)
			gapless(t, "events", s.allEvents(t, session.ID), func(e core.Event) int64 { return e.Seq })
		}
		unknown := core.MessageID("0192f0c4-0000-7000-8000-000000000999")
		if _, err := s.messages.Append(t.Context(), ann(), core.AppendMessages{SessionID: session.ID, Branch: &unknown, Messages: []core.Message{said(core.RoleUser, "x")}}); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("got %v for a branch after an unknown message, want ErrNotFound", err)
		}
	})
}
