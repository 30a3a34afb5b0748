package coretest

import (
	"fmt"
	"strings"

	"bobbin/app/core"
)

// revise replaces the text of a message of the session.
func (s *suite) revise(id core.MessageID, content string) (core.Message, []core.Event, error) {
	return s.Branches.Revise(s.Context(), tenant(), core.ReviseMessage{SessionID: s.session.ID, MessageID: id, Content: content, TokenCount: len(content)})
}

// An edit changes a user's message in place and keeps what it said; nothing else moves, and
// nothing runs. The same text changes nothing.
func testRevise(s *suite) {
	log := s.turns(2)
	before := int64(len(s.events(0)))
	m, events, err := s.revise(log[0].ID, "another question")
	s.succeeds("revise", err)
	s.equal("events", Types(events), []core.EventType{core.EventMessageUpdated, core.EventSessionUpdated})
	shown := Data[core.MessageData](events[0]).Message
	s.equal("message.updated", []any{shown.Content, shown.RevisedAt != nil, len(shown.Revisions)}, []any{"another question", true, 0})
	s.equal("stored events", Types(s.events(before)), Types(events))
	stored := must[core.Message](s, "get")(s.Messages.Get(s.Context(), tenant(), s.session.ID, log[0].ID))
	for _, m := range []core.Message{m, stored} {
		s.equal("message", []any{m.Seq, m.Content, m.TokenCount, m.RevisedAt != nil, m.OnPath}, []any{1, "another question", 16, true, true})
		s.equal("revisions", []any{len(m.Revisions), m.Revisions[0].Content, m.Revisions[0].TokenCount}, []any{1, "question 0", 7})
	}
	s.equal("log", contents(s.log()), []string{"another question", "re: question 0", "question 1", "re: question 1"})
	for _, m := range s.log() {
		s.equal("revisions in the conversation", len(m.Revisions), 0)
	}

	_, events, err = s.revise(log[0].ID, "another question")
	s.succeeds("the same text", err)
	s.equal("events of the same text", len(events), 0)
	_, _, err = s.revise(log[1].ID, "another answer")
	s.fails("an answer", err, core.ErrUnprocessable)
	_, _, err = s.revise(core.NewID[core.MessageID](), "another")
	s.fails("a message that does not exist", err, core.ErrNotFound)
	_, _, err = s.Branches.Revise(s.Context(), core.Tenant{Owner: "eve"}, core.ReviseMessage{SessionID: s.session.ID, MessageID: log[0].ID, Content: "hers"})
	s.fails("a message of somebody else", err, core.ErrNotFound)
}

// No message changes while a run is at work or queued, nor one that is queued itself.
func testReviseBusy(s *suite) {
	first := s.turns(1)[0]
	active := s.accept(s.ask("active")).Run
	queued := s.accept(s.ask("queued")).Run
	for what, id := range map[string]core.MessageID{"earlier": first.ID, "active": active.UserMessageID, "queued": queued.UserMessageID} {
		_, _, err := s.revise(id, "changed")
		s.fails(what, err, core.ErrConflict)
	}
	s.finish(active)
	_, _, err := s.revise(queued.UserMessageID, "changed")
	s.fails("before its turn", err, core.ErrConflict)
	s.finish(s.claim(worker).Run)
	_, _, err = s.revise(queued.UserMessageID, "changed")
	s.succeeds("after its turn", err)
}

// A message keeps its newest revisions.
func testReviseOften(s *suite) {
	id := s.turns(1)[0].ID
	revisions := func(content string) []core.Revision {
		s.Helper()
		m, _, err := s.revise(id, content)
		s.succeeds("revise", err)
		return m.Revisions
	}
	for i := range core.MaxRevisions + 5 {
		revisions(fmt.Sprint("text ", i))
	}
	got := revisions("last")
	s.equal("revisions", []any{len(got), got[0].Content, got[len(got)-1].Content}, []any{core.MaxRevisions, "text 5", fmt.Sprint("text ", core.MaxRevisions+4)})
	revisions(strings.Repeat("a", core.MaxRevisionBytes/2))
	revisions(strings.Repeat("b", core.MaxRevisionBytes))
	got = revisions("end")
	s.equal("revisions after long ones", []any{len(got), got[0].Content[:1]}, []any{1, "b"})
}

// A summary that covered the message is erased, and the session falls back to the one before.
func testReviseSummary(s *suite) {
	log := s.turns(3)
	first, second := summaryOf(log[:2], core.SummaryActive), summaryOf(log[:4], core.SummaryActive)
	first.Content, second.Content = "first", "second"
	s.apply(core.ContextChange{Summary: first})
	s.apply(core.ContextChange{Summary: second, PromptState: []byte("{}")})
	revision := s.get().PromptRevision
	_, _, err := s.revise(log[4].ID, "uncovered")
	s.succeeds("revise", err)
	s.equal("summary", []any{*s.get().ConversationSummary, s.get().SummaryVersion}, []any{"second", 2})
	if got := s.get(); got.PromptRevision <= revision || len(got.PromptState) > 0 {
		s.Errorf("got prompt revision %d with state %s, want a greater one than %d and none", got.PromptRevision, got.PromptState, revision)
	}
	_, _, err = s.revise(log[2].ID, "covered by the second")
	s.succeeds("revise", err)
	s.equal("summary", []any{*s.get().ConversationSummary, s.get().SummaryVersion}, []any{"first", 3})
	_, _, err = s.revise(log[0].ID, "covered by all")
	s.succeeds("revise", err)
	if got := s.get(); got.ConversationSummary != nil || got.SummaryVersion != 0 {
		s.Errorf("got summary %v of version %d, want none", got.ConversationSummary, got.SummaryVersion)
	}
	page, err := s.Summaries.List(s.Context(), tenant(), s.session.ID, core.PageQuery{})
	s.succeeds("list", err)
	for _, v := range page.Items {
		s.equal("version", []any{v.State, v.Content}, []any{core.SummaryErased, ""})
	}
}
