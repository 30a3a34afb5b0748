package repositories_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// copies counts how often a text is stored, by table.
func (s *store) copies(t *testing.T, text string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for table, column := range map[string]string{"messages": "content", "runs": "CAST(input AS text)", "session_events": "CAST(data AS text)"} {
		if n := s.count(t, "SELECT COUNT(*) FROM "+table+" WHERE "+column+" LIKE ?", "%"+text+"%"); n > 0 {
			found[table] = n
		}
	}
	return found
}

// A question and its answer are stored in the log only, however many events contain them,
// and readers get them from there.
func TestMessagesAreStoredOnce(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		const question, answered = "why is the sky blue", "because of its air"
		first := s.accept(t, ask(id, "before"))
		queued := s.accept(t, ask(id, question))
		if got, want := s.copies(t, question), map[string]int{"runs": 1}; !cmp.Equal(got, want) {
			t.Errorf("queued: got it in %v, want %v", got, want)
		}
		s.finish(t, first.Run, "done")
		claimed := s.claim(t, id)
		compare.Equal(t, "claimed: want the question", []any{queued.Run.ID, question, question}, []any{claimed.Run.ID, claimed.Run.Input.Content, claimed.Message.Content})
		s.finish(t, claimed.Run, answered)
		must.Get2(repositories.NewBranches(s.Gorm).Pin(t.Context(), ann(), id, claimed.Message.ID, true))(t)
		for _, text := range []string{question, answered} {
			if got, want := s.copies(t, text), map[string]int{"messages": 1}; !cmp.Equal(got, want) {
				t.Errorf("%q: got it in %v, want %v", text, got, want)
			}
		}

		log := map[core.MessageID]core.Message{}
		for _, m := range s.log(t, id) {
			log[m.ID] = m
		}
		for _, e := range s.allEvents(t, id) {
			switch e.Type {
			case core.EventMessageCreated, core.EventMessageUpdated:
				m := decode[core.MessageData](t, e).Message
				compare.Equal(t, string(e.Type), log[m.ID], m)
			case core.EventRunQueued:
				m := decode[core.MessageData](t, e).Message
				compare.Equal(t, "run.queued: want the question without a place in the log", []any{question, claimed.Run.UserMessageID, int64(0), core.MessageID("")}, []any{m.Content, m.ID, m.Seq, m.ParentID})
			case core.EventRunStarted, core.EventRunSucceeded:
				if in := decode[core.RunData](t, e).Run.Input; in.Content != "" || in.Source == "" {
					t.Errorf("%s: got the input %+v, want it without content", e.Type, in)
				}
			}
		}
		runs, err := s.runs.List(t.Context(), ann(), id, core.PageQuery{})
		if err != nil || runs.Items[0].Input.Content != question || runs.Items[0].Input.TokenCount != 7 {
			t.Errorf("list: got %+v, %v, want the question", runs.Items[0].Input, err)
		}
		compare.Equal(t, "get: want the question", question, s.run(t, claimed.Run.ID).Input.Content)
	})
}

// session.updated contains the session as it is when the event is read: no event contains a
// summary that covered a deleted message.
func TestSessionEventsReferToTheSession(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		for _, title := range []string{"a title with " + secret, "another"} {
			if _, events, err := s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new(title)}); err != nil || decode[core.SessionData](t, events[0]).Session.Title != title {
				t.Fatalf("update: %v, want %q told", err, title)
			}
		}
		compare.Equal(t, "events with the title", 0, s.copies(t, secret)["session_events"])
		for _, e := range s.allEvents(t, id) {
			got := decode[core.SessionData](t, e).Session
			compare.Equal(t, "the session as it is", []any{id, "another"}, []any{got.ID, got.Title})
		}
	})
}

// Events about a run refer to it: replayed they have what was published.
func TestRunEventsReferToTheRun(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		in := ask(id, "why is the sky blue")
		in.User, in.ClientMessageID, in.Webhook = "eve", "c-1", &core.Webhook{URL: "https://hooks.example/x", Secret: "s"}
		accepted, m := s.accept(t, in), answer("because")
		written := s.write(t, core.RunWrite{
			RunID: accepted.Run.ID, SessionID: id, Attempt: 1, Messages: []core.Message{m}, Usage: core.Usage{InputTokens: 7}, Context: []byte(`{"used": 5}`),
			End: &core.RunEnd{Status: core.RunFailed, Error: &core.RunError{Code: "llm_error", Message: "no answer"}, AnswerID: m.ID},
		})
		live, stored := append(accepted.Events, written.Events...), s.allEvents(t, id)
		compare.Equal(t, "events", types(live), types(stored))
		for i, e := range stored {
			compare.Equal(t, string(e.Type), dataText(t, live[i]), dataText(t, e))
			compare.Equal(t, string(e.Type)+": bytes", live[i].Size, e.Size)
		}
		if n := s.count(t, "SELECT MAX(octet_length(CAST(data AS text))) FROM session_events"); n > 100 {
			t.Errorf("an event is stored in %d bytes, want a reference", n)
		}
	})
}

// An event of a newer version is read as it is stored.
func TestEventOfANewerVersion(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		s.accept(t, ask(id, "hello"))
		s.exec(t, `UPDATE session_events SET type = 'run.paused', data = '{"until": ["noon"]}' WHERE session_id = ? AND event_seq = 1`, id)
		s.exec(t, `UPDATE session_events SET data = '{"message": "m1"}' WHERE session_id = ? AND event_seq = 2`, id)
		all := s.allEvents(t, id)
		if got := dataText(t, all[0]); got != `{"until":["noon"]}` || all[0].Type != "run.paused" {
			t.Errorf("got %s %s, want the event as it is stored", all[0].Type, got)
		}
		compare.Equal(t, "dataText(t, all[1]): want the data as they are stored", `{"message":"m1"}`, dataText(t, all[1]))
	})
}

// walk reads a list page by page. No page has more bytes than that but with a single
// item, and each has as many as fit.
func walk[T any](t *testing.T, most int, list func(cursor string) (core.Page[T], error)) (items []T, pages int) {
	t.Helper()
	items = all(t, func(cursor string) (core.Page[T], error) {
		page := must.Get(list(cursor))(t)
		if raw := must.Get(json.Marshal(page.Items))(t); len(raw) > most+most/10 && len(page.Items) > 1 || len(page.Items) == 0 {
			t.Errorf("page %d has %d items of %d bytes, want at least one and at most %d bytes", pages, len(page.Items), len(raw), most)
		}
		pages++
		return page, nil
	})
	return items, pages
}

// large returns messages of all kinds, some of them large.
func large() []core.Message {
	text := strings.Repeat("x", 1<<20) // one word, which is quickly made searchable
	var list []core.Message
	for i := range 20 {
		m := core.Message{Role: core.RoleUser, Content: fmt.Sprintf("message %d", i), Source: core.SourceAPI, Status: core.MessageComplete}
		switch i % 4 {
		case 1:
			m.Content = text
		case 2: // PostgreSQL stores it in a hundredth of its length
			m.Role, m.ToolCalls = core.RoleAssistant, []core.ToolCall{{ID: "c", Name: "n", Arguments: strings.Repeat("a", 2<<20)}}
		case 3:
			m.Role, m.Parts = core.RoleAssistant, []core.Part{{Type: core.PartReasoning, Text: text}}
		}
		list = append(list, m)
	}
	return list
}

// A page of messages ends at a number of bytes, in both directions, and nothing is left
// out between two pages.
func TestPagesOfMessagesInBytes(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		must.Get(s.messages.Append(t.Context(), ann(), core.AppendMessages{SessionID: id, Messages: large(), Import: true}))(t)
		var want []int64
		for seq := range int64(20) {
			want = append(want, seq+1)
		}
		for name, q := range map[string]core.MessageQuery{
			"forward": {PageQuery: core.PageQuery{Limit: 200}}, "backward": {PageQuery: core.PageQuery{Limit: 200}, Before: 1000},
			"in small pieces": {PageQuery: core.PageQuery{Limit: 200, Bytes: 1 << 20}},
		} {
			most := int(q.Bytes)
			if most == 0 {
				most = core.MaxMessagePageBytes
			}
			got, pages := walk(t, most, func(cursor string) (core.Page[core.Message], error) {
				q.Cursor = cursor
				return s.messages.List(t.Context(), ann(), id, q)
			})
			numbers := seqs(got)
			slices.Sort(numbers)
			if diff := cmp.Diff(want, numbers); diff != "" || pages < 3 {
				t.Errorf("%s: %d pages, messages (-want +got):\n%s", name, pages, diff)
			}
		}
	})
}

// The other lists end at a number of bytes, too.
func TestPagesInBytes(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		text := strings.Repeat("x", 360_000)
		s.accept(t, ask(id, "the first one runs"))
		for range 8 {
			s.accept(t, ask(id, text))
		}
		check := func(name string, items, want, pages, least int) {
			t.Helper()
			if items != want || pages < least {
				t.Errorf("%s: got %d items on %d pages, want %d on %d or more", name, items, pages, want, least)
			}
		}
		runs, pages := walk(t, core.MaxPageBytes, func(cursor string) (core.Page[core.Run], error) {
			return s.runs.List(t.Context(), ann(), id, core.PageQuery{Limit: 200, Cursor: cursor})
		})
		check("runs", len(runs), 9, pages, 4)
		pending, err := s.runs.Pending(t.Context(), ann(), id)
		if err != nil || len(pending) < 1 || len(pending) > 3 || pending[0].QueueSeq != 2 {
			t.Errorf("got %d pending runs, %v, want the first ones of 1 MiB", len(pending), err)
		}
		for i := range 9 {
			other := s.session(t).ID
			s.exec(t, "UPDATE sessions SET conversation_summary = ? WHERE id = ?", text[:200_000], other)
			s.exec(t, `INSERT INTO session_summaries (id, session_id, owner, version, kind, state, content, created_at) VALUES (?, ?, 'ann', ?, 'rolling', 'dropped', ?, ?)`,
				core.NewID[string](), id, i+1, text[:200_000], core.Now())
		}
		sessions, pages := walk(t, core.MaxPageBytes, func(cursor string) (core.Page[core.Session], error) {
			return s.sessions.List(t.Context(), ann(), core.SessionQuery{Summaries: true, PageQuery: core.PageQuery{Limit: 200, Cursor: cursor}})
		})
		check("sessions", len(sessions), 10, pages, 2)
		summaries, pages := walk(t, core.MaxPageBytes, func(cursor string) (core.Page[core.Summary], error) {
			return s.summaries.List(t.Context(), ann(), id, core.PageQuery{Limit: 200, Cursor: cursor})
		})
		check("summaries", len(summaries), 9, pages, 2)
		memories := repositories.NewMemories(s.Gorm)
		for range 40 {
			must.Get(memories.Create(t.Context(), core.Memory{Owner: "ann", Content: text[:32<<10]}))(t)
		}
		found, pages := walk(t, core.MaxPageBytes, func(cursor string) (core.Page[core.Memory], error) {
			return memories.List(t.Context(), ann(), core.PageQuery{Limit: 200, Cursor: cursor})
		})
		check("memories", len(found), 40, pages, 2)
	})
}

// A page of events ends at a number of bytes, and says whether there are more.
func TestPagesOfEventsInBytes(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		for _, m := range large() { // each with an event of its own
			must.Get(s.messages.Append(t.Context(), ann(), core.AppendMessages{SessionID: id, Messages: []core.Message{m}}))(t)
		}
		for i := range 10 { // each refers to the session
			must.Get2(s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new(strings.Repeat("t", i+1))}))(t)
		}
		s.exec(t, "UPDATE sessions SET instructions = '"+strings.Repeat("x", core.MaxPageBytes/3)+"'")
		want := s.allEvents(t, id)
		var got []core.Event
		for last := int64(0); ; {
			page, more := must.Get2(s.events.Page(t.Context(), id, last, 200))(t)
			bytes := 0
			for _, e := range page {
				bytes += len(dataText(t, e))
			}
			if bytes > core.MaxPageBytes && len(page) > 1 || len(page) == 0 {
				t.Errorf("got %d events of %d bytes after %d, want at least one and at most 1 MiB", len(page), bytes, last)
			}
			got, last = append(got, page...), page[len(page)-1].Seq
			if !more {
				break
			}
		}
		if diff := cmp.Diff(len(want), len(got)); diff != "" || len(got) != 30 {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if page, more, err := s.events.Page(t.Context(), id, 30, 200); len(page) != 0 || more || err != nil {
			t.Errorf("got %d events, %t, %v behind the last one, want none", len(page), more, err)
		}
	})
}
