package coretest

import (
	"errors"
	"fmt"
	"testing"

	"bobbin/app/core"
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
	if !errors.Is(got, want) {
		s.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

// equal compares what a store returned, as it is printed.
func (s *suite) equal(what string, got, want any) {
	s.Helper()
	if have := fmt.Sprint(got); have != fmt.Sprint(want) {
		s.Errorf("%s: got %s, want %v", what, have, want)
	}
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

// contents returns the contents of messages.
func contents(messages []core.Message) []string {
	out := make([]string, 0, len(messages))
	for _, m := range messages {
		out = append(out, m.Content)
	}
	return out
}
