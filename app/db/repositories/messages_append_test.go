package repositories_test

import (
	"errors"
	"fmt"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

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
