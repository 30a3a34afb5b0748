package coretest

import (
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/compare"
)

// TestRevisions is TestStores for stores with branches.
func TestRevisions(t *testing.T, open func(t *testing.T) Stores) {
	testAll(t, open, map[string]func(*suite){"revise": testRevise, "busy": testReviseBusy, "often": testReviseOften, "covers": testReviseSummary})
}

// TestStores is the suite that every implementation of the stores passes. Open returns the empty
// stores of a database that nothing else uses.
func TestStores(t *testing.T, open func(t *testing.T) Stores) {
	testAll(t, open, map[string]func(*suite){
		"sessions":              testSessions,
		"statuses":              testStatuses,
		"messages":              testMessages,
		"speakers":              testSpeakers,
		"events":                testEvents,
		"tenants":               testTenants,
		"accept":                testAccept,
		"limits":                testLimits,
		"claim":                 testClaim,
		"options":               testOptions,
		"client tools":          testClientTools,
		"write":                 testWrite,
		"repeated":              testRepeatedWrite,
		"fencing":               testFencing,
		"tools":                 testTools,
		"cancel":                testCancel,
		"take over":             testTakeOver,
		"leases":                testLeases,
		"waiting":               testWaiting,
		"approvals":             testApprovals,
		"approvals end":         testApprovalsEnd,
		"results and a message": testResultsWithMessage,
		"context":               testContext,
		"prepared":              testPrepared,
		"native":                testNative,
		"loops":                 testLoops,
		"restore":               testRestore,
		"breaker":               testBreaker,
		"summary lease":         testSummaryLease,
	})
}

func testAll(t *testing.T, open func(t *testing.T) Stores, tests map[string]func(*suite)) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &suite{T: t, Stores: open(t)}
			s.session = s.create(core.Session{Owner: "ann", UserID: "carol", Agent: "assistant"})
			test(s)
		})
	}
}

// suite is one test of the suite, with a session of ann's user carol.
type suite struct {
	*testing.T
	Stores
	session core.Session
}

// tenant is ann; eve must see nothing of hers.
func tenant() core.Tenant { return core.Tenant{Owner: "ann"} }

// The worker of the suite, an earlier process of its replica, and another replica.
const (
	worker  = "one/b"
	earlier = "one/a"
	other   = "two/a"
)

// must fails the test for an error.
func must[T any](s *suite, what string) func(T, error) T {
	return func(v T, err error) T {
		s.Helper()
		s.succeeds(what, err)
		return v
	}
}

func (s *suite) succeeds(what string, err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: got error %v, want none", what, err)
	}
}

func (s *suite) fails(what string, got, want error) {
	s.Helper()
	compare.Error(s, what, want, got)
}

// equal compares what a store returned, as it is printed.
func (s *suite) equal(what string, got, want any) {
	s.Helper()
	compare.Equal(s, what, fmt.Sprint(want), fmt.Sprint(got))
}

func (s *suite) create(in core.Session) core.Session {
	s.Helper()
	return must[core.Session](s, "create")(s.Sessions.Create(s.Context(), in))
}

// get returns the session as it is stored.
func (s *suite) get() core.Session {
	s.Helper()
	return must[core.Session](s, "get")(s.Sessions.Get(s.Context(), tenant(), s.session.ID))
}

func (s *suite) log() []core.Message {
	s.Helper()
	return must[[]core.Message](s, "log")(s.Messages.GetMessagesAfter(s.Context(), tenant(), s.session.ID, ""))
}

// events returns the events of the session after a number.
func (s *suite) events(after int64) []core.Event {
	s.Helper()
	list, _, err := s.Events.Page(s.Context(), s.session.ID, after, 1000)
	s.succeeds("page of events", err)
	return list
}

func (s *suite) run(id core.RunID) core.Run {
	s.Helper()
	return must[core.Run](s, "run")(s.Runs.Get(s.Context(), tenant(), id))
}

// ask is a message of the session that the worker may answer.
func (s *suite) ask(content string) core.AcceptRun {
	return core.AcceptRun{
		SessionID: s.session.ID, Agent: "assistant", Worker: worker,
		Input: core.RunInput{Content: content, Source: core.SourceAPI, TokenCount: 7},
	}
}

func (s *suite) accept(in core.AcceptRun) core.Accepted {
	s.Helper()
	return must[core.Accepted](s, "accept")(s.Runs.Accept(s.Context(), tenant(), in))
}

func (s *suite) claim(worker string) core.Claimed {
	s.Helper()
	return must[core.Claimed](s, "claim")(s.Runs.Claim(s.Context(), s.session.ID, worker))
}

// answerTo is a write that stores an answer, without its end.
func answerTo(run core.Run, content string) core.RunWrite {
	m := core.Message{ID: core.NewID[core.MessageID](), Role: core.RoleAssistant, Content: content, Source: core.SourceAPI}
	return core.RunWrite{RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt, Messages: []core.Message{m}}
}

func (s *suite) write(w core.RunWrite) core.Written {
	s.Helper()
	return must[core.Written](s, "write")(s.Runs.Write(s.Context(), w))
}

// finish ends the run with an answer.
func (s *suite) finish(run core.Run) core.Written {
	s.Helper()
	w := answerTo(run, "re: "+run.Input.Content)
	w.End = &core.RunEnd{Status: core.RunSucceeded, AnswerID: w.Messages[0].ID}
	return s.write(w)
}

// turns stores n questions with their answers and returns the log.
func (s *suite) turns(n int) []core.Message {
	s.Helper()
	for i := range n {
		s.finish(s.accept(s.ask(fmt.Sprint("question ", i))).Run)
	}
	return s.log()
}

// Contents returns the contents of messages.
func Contents(messages []core.Message) (out []string) {
	for _, m := range messages {
		out = append(out, m.Content)
	}
	return out
}

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
	s.equal("log", Contents(s.log()), []string{"another question", "re: question 0", "question 1", "re: question 1"})
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
