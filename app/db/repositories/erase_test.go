package repositories_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
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
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		branches := repositories.NewBranches(d.Gorm)
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
		if _, _, err := s.sessions.Update(t.Context(), ann(), id, core.SessionPatch{Title: new("told")}); err != nil {
			t.Fatal(err)
		}
		s.keep(t, "k", "POST /x", `{"message":{"id":"`+string(log[5].ID)+`"}}`)
		events := s.allEvents(t, id)

		for _, m := range []core.Message{log[2], log[4], log[5]} { // the question, a tool's result, the answer
			if _, err := branches.Delete(t.Context(), ann(), id, m.ID); err != nil {
				t.Fatalf("delete #%d: %v", m.Seq, err)
			}
		}
		if hits := s.remains(t); len(hits) > 0 {
			t.Errorf("got the secret still in %v", hits)
		}
		s.wantPath(t, id, 1, 2, 7, 8)
		s.wantSummary(t, id, 2, 3)
		s.wantTombstones(t, id, events)
		if got := s.get(t, id); got.SummaryCount != 3 || got.PromptRevision <= covered.PromptRevision || got.MessageCount != 8 {
			t.Errorf("got %d summaries, revision %d, %d messages", got.SummaryCount, got.PromptRevision, got.MessageCount)
		}
		erased, err := s.summaries.Get(t.Context(), ann(), id, 2)
		if err != nil || erased.State != core.SummaryErased || erased.Content != "" {
			t.Errorf("got version 2 %s %q, error %v, want it erased", erased.State, erased.Content, err)
		}
		if n := s.count(t, "SELECT COUNT(*) FROM search_entries WHERE message_id IN ?", []core.MessageID{log[2].ID, log[3].ID, log[4].ID, log[5].ID}); n != 0 {
			t.Errorf("got %d messages still in the search index", n)
		}
		if n := s.count(t, "SELECT COUNT(*) FROM idempotency_keys WHERE body IS NOT NULL"); n != 0 {
			t.Errorf("got %d answers still kept", n)
		}
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
	if diff := cmp.Diff(types(before), types(after[:len(before)])); diff != "" {
		t.Errorf("types of the events (-before +after):\n%s", diff)
	}
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
		if m.DeletedAt == nil || m.Content != "" || len(m.ToolCalls) > 0 || m.TokenCount != 0 {
			t.Errorf("event %d: got %+v, want a tombstone", e.Seq, m)
		}
	}
	if gone != 8 {
		t.Errorf("got %d tombstones, want one for each message.created and each message.updated", gone)
	}
}

// Earlier copies stay in the fork, which is a separate session.
func TestDeleteSparesForks(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		branches := repositories.NewBranches(d.Gorm)
		id := s.session(t).ID
		log := s.confess(t, id)
		fork := must.Get(branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: id, MessageID: log[1].ID, Title: "copy"}))(t)
		s.index(t)
		must.Get(branches.Delete(t.Context(), ann(), id, log[1].ID))(t)
		copies := s.log(t, fork.ID)
		if len(copies) != 3 || !strings.Contains(copies[1].ToolCalls[0].Arguments, secret) || copies[2].ToolCallID != "call-1" {
			t.Errorf("got %+v, want the question, and the call with its result", copies)
		}
		if n := s.count(t, "SELECT COUNT(*) FROM search_entries WHERE session_id = ?", fork.ID); n != 4 {
			t.Errorf("got %d search entries of the fork, want its title and three messages", n)
		}
		s.wantPath(t, id, 1, 4)
	})
}
