package coretest

import (
	"errors"
	"time"

	"bobbin/app/core"
)

// takeOver takes over runs of so many deaths and checks how many there are.
func (s *suite) takeOver(worker string, deaths, want int) []core.Run {
	s.Helper()
	got := must[[]core.Run](s, "take over")(s.Runs.TakeOver(s.Context(), core.TakeOver{Worker: worker, Deaths: deaths, Limit: 10}))
	if len(got) != want {
		s.Fatalf("%s took over %d runs of %d deaths, want %d", worker, len(got), deaths, want)
	}
	return got
}

func (s *suite) due(worker string) map[int]int {
	s.Helper()
	return must[map[int]int](s, "due")(s.Runs.Due(s.Context(), worker, false))
}

// A worker takes over the runs of its replica's earlier processes, which died, and those that
// were given back.
func testTakeOver(s *suite) {
	in := s.ask("of replicas with similar names")
	for _, in.Worker = range []string{"one-more/a", "some/one/a"} {
		in.SessionID = s.create(core.Session{Owner: "ann"}).ID
		s.accept(in)
	}
	in = s.ask("one")
	in.Worker = earlier
	run := s.accept(in).Run
	s.equal("due for another replica", s.due(other), map[int]int{})
	s.equal("due for the process itself", s.due(earlier), map[int]int{})
	s.equal("due for the replica's next process", s.due(worker), map[int]int{1: 1})
	s.takeOver(worker, 0, 0)
	later := must[[]core.Run](s, "take over")(s.Runs.TakeOver(s.Context(), core.TakeOver{Worker: worker, Deaths: 1, Later: true, Limit: 1}))
	if len(later) != 1 || later[0].ID != run.ID || later[0].Attempt != 2 || later[0].LeaseOwner != worker || later[0].Deaths != 0 {
		s.Fatalf("got %+v, want the second attempt, its death not counted yet", later)
	}
	s.equal("due if this process dies, too", s.due("one/c"), map[int]int{1: 1})
	for range 2 { // the answer to the first may be lost
		s.succeeds("count", s.Runs.CountDeath(s.Context(), run.ID, 2, 1))
	}
	s.equal("deaths", s.run(run.ID).Deaths, 1)
	s.equal("due after another death", s.due("one/c"), map[int]int{2: 1})

	s.succeeds("yield", s.Runs.Yield(s.Context(), run.ID, 2))
	s.equal("given back", []any{s.run(run.ID).GiveBacks, s.run(run.ID).LeaseOwner}, []any{1, ""})
	s.equal("due after it was given back", s.due(other), map[int]int{1: 1})
	s.equal("input", s.takeOver(other, 1, 1)[0].Input.Content, "one")
	none := must[[]core.Run](s, "take over")(s.Runs.TakeOver(s.Context(), core.TakeOver{Worker: worker, Deaths: 1, Limit: 1}))
	s.equal("twice", len(none), 0)
}

// A heartbeat says which leases are lost; a worker ends its own.
func testLeases(s *suite) {
	one := s.accept(s.ask("one")).Run
	second := s.create(core.Session{Owner: "ann", Agent: "assistant"})
	in := s.ask("two")
	in.SessionID = second.ID
	two := s.accept(in).Run
	renew := func(worker string) []core.RunID {
		s.Helper()
		return must[[]core.RunID](s, "renew")(s.Runs.Renew(s.Context(), worker, []core.RunID{one.ID}))
	}
	before := s.run(one.ID).LeaseUntil
	s.equal("lost", len(renew(worker)), 0)
	if after := s.run(one.ID).LeaseUntil; before == nil || after.Before(*before) || after.After(time.Now().Add(2*core.RunLease)) {
		s.Errorf("the lease ended at %v, now at %v, want it renewed", before, after)
	}
	s.equal("lost by another worker", renew(other), []core.RunID{one.ID})
	s.succeeds("hand back of another's", s.Runs.Release(s.Context(), other, one.ID))
	s.equal("owner", s.run(one.ID).LeaseOwner, worker)
	s.succeeds("hand back", s.Runs.Release(s.Context(), worker, one.ID))
	s.equal("owners", []string{s.run(one.ID).LeaseOwner, s.run(two.ID).LeaseOwner}, []string{"", worker})
	s.succeeds("release", s.Runs.Release(s.Context(), worker))
	s.equal("due", s.due(other), map[int]int{0: 2})
	taken := s.takeOver(other, 0, 2)
	s.equal("oldest first", []core.RunID{taken[0].ID, taken[1].ID}, []core.RunID{one.ID, two.ID})
	s.equal("lost by its former worker", renew(worker), []core.RunID{one.ID})
}

// Sessions whose queue stands still are found, the longest waiting first.
func testWaiting(s *suite) {
	var want []core.SessionID
	for range 3 {
		session := s.create(core.Session{Owner: "ann", Agent: "assistant"})
		in := s.ask("hello")
		in.SessionID, in.Worker = session.ID, ""
		s.accept(in)
		want = append(want, session.ID)
	}
	s.accept(s.ask("active"))
	s.accept(s.ask("queued behind it"))
	waiting := func(limit int) []core.SessionID {
		s.Helper()
		return must[[]core.SessionID](s, "waiting")(s.Runs.Waiting(s.Context(), limit))
	}
	s.equal("waiting", waiting(10), want)
	s.equal("of a limit", waiting(2), want[:2])
	must[core.Claimed](s, "claim")(s.Runs.Claim(s.Context(), want[0], worker))
	s.equal("after a claim", waiting(10), want[1:])
}

// waitFor is a write that asks for approvals of calls.
func waitFor(run core.Run, expiry time.Duration, calls ...string) core.RunWrite {
	w := core.RunWrite{RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt, Wait: &core.RunWait{Expiry: expiry}}
	for _, id := range calls {
		w.Wait.Approvals = append(w.Wait.Approvals, core.Approval{ToolCallID: id, Tool: "pay", Definition: "pay-1", Mode: core.ApprovalFirst})
	}
	return w
}

func (s *suite) approvals(run core.RunID) []core.Approval {
	s.Helper()
	return must[[]core.Approval](s, "approvals")(s.Runs.Approvals(s.Context(), run))
}

// The results of a client's calls are stored all or none, and the first of each counts. Options that come
// with the first replace those of the run, which are kept for what responses say.
func testClientTools(s *suite) {
	in := s.ask("one")
	in.Options = &core.RunOptions{ToolChoice: core.ToolChoiceRequired, Response: &core.ResponseDetails{PreviousID: "r"}}
	run := s.accept(in).Run
	w := waitFor(run, 0, "a", "b", "c")
	w.Wait.Approvals[0].Kind, w.Wait.Approvals[1].Kind, w.Wait.Approvals[2].Mode = core.KindClientTool, core.KindClientTool, core.ApprovalAlways
	s.write(w)
	var options *core.RunOptions
	answer := func(results ...core.CallResult) (core.Decided, error) {
		return s.Runs.AnswerCalls(s.Context(), tenant(), core.AnswerCalls{SessionID: s.session.ID, Results: results, By: "carol", Options: options})
	}
	code := func(what string, err, kind error, want string) {
		s.Helper()
		s.fails(what, err, kind)
		if e, ok := errors.AsType[*core.Error](err); !ok || e.Code != want {
			s.Errorf("%s: got %v, want the code %s", what, err, want)
		}
	}
	before := len(s.events(0))
	a, b := core.CallResult{ToolCallID: "a", Result: "one"}, core.CallResult{ToolCallID: "b", Result: "", IsError: true}
	_, err := answer(a, core.CallResult{ToolCallID: "x"})
	code("no such call", err, core.ErrNotFound, core.CodeNoToolCall)
	_, err = answer(core.CallResult{ToolCallID: "c"})
	code("a call of the server", err, core.ErrNotFound, core.CodeNoToolCall)
	_, err = s.Runs.AnswerCalls(s.Context(), core.Tenant{Owner: "eve"}, core.AnswerCalls{SessionID: s.session.ID, Results: []core.CallResult{a}})
	s.fails("another owner", err, core.ErrNotFound)
	s.equal("events of what failed", len(s.events(0)), before)

	options = &core.RunOptions{Instructions: "Be brief.", Response: &core.ResponseDetails{PreviousID: "r2"}}
	got := must[core.Decided](s, "answer")(answer(a, b))
	options = &core.RunOptions{}
	s.equal("events", Types(got.Events), []core.EventType{core.EventApprovalDecided, core.EventApprovalDecided})
	s.equal("run", []any{got.Run.ID, got.Run.Status}, []any{run.ID, core.RunWaiting})
	again := must[core.Decided](s, "answer again")(answer(a))
	s.equal("again", []any{again.Run.ID, len(again.Events)}, []any{run.ID, 0})
	o := s.run(run.ID).Options
	s.equal("options", []any{o.ToolChoice, o.Instructions, o.At(0).Response.PreviousID, o.Since}, []any{core.ToolChoiceAuto, "Be brief.", "r", "a"})
	a.Result = "another"
	_, err = answer(b, a)
	code("another result", err, core.ErrConflict, core.CodeCallDecided)
	some := must[[]core.Approval](s, "some approvals")(s.Runs.Approvals(s.Context(), run.ID, "a", "b"))
	for i, want := range []core.Approval{
		{Status: core.ApprovalAnswered, Kind: core.KindClientTool, Result: "one", DecidedBy: "carol"},
		{Status: core.ApprovalAnswered, Kind: core.KindClientTool, Failed: true, DecidedBy: "carol"},
	} {
		a := some[i]
		s.equal("stored", []any{a.Status, a.Kind, a.Result, a.Failed, a.DecidedBy}, []any{want.Status, want.Kind, want.Result, want.Failed, want.DecidedBy})
	}

	id := s.approvals(run.ID)[2].ID
	decide := func(d core.ApprovalDecision) error {
		_, err := s.Runs.Decide(s.Context(), tenant(), run.ID, id, d)
		return err
	}
	s.fails("a result for a tool of the server", decide(core.ApprovalDecision{Result: new("x")}), core.ErrInvalid)
	s.succeeds("edited", decide(core.ApprovalDecision{Approve: true, Arguments: `{"a":1}`}))
	s.succeeds("edited again", decide(core.ApprovalDecision{Approve: true, Arguments: `{"a":1}`}))
	s.fails("edited otherwise", decide(core.ApprovalDecision{Approve: true, Arguments: `{"a":2}`}), core.ErrConflict)
	s.equal("edited arguments", s.approvals(run.ID)[2].Edited, `{"a":1}`)
	s.equal("claimed", s.claim(other).Run.ID, run.ID)
	s.equal("allowed", len(s.allowed(s.session.ID)), 0)
}

// allowed returns the definitions of the suite's tools that were approved once and for all.
func (s *suite) allowed(session core.SessionID) map[string]bool {
	s.Helper()
	return must[map[string]bool](s, "allowed")(s.Runs.Allowed(s.Context(), session, []string{"pay", "look"}))
}

// A run waits until all its questions are decided; the first decision of each counts.
func testApprovals(s *suite) {
	run := s.accept(s.ask("one")).Run
	two := s.accept(s.ask("two")).Run
	s.succeeds("count", s.Runs.CountDeath(s.Context(), run.ID, run.Attempt, 2))
	w := waitFor(run, 0, "a", "b")
	w.Wait.Approvals[1].Tool, w.Wait.Approvals[1].Definition = "look", "look-1"
	out := s.write(w)
	s.equal("events", Types(out.Events), []core.EventType{core.EventApprovalRequested, core.EventApprovalRequested, core.EventRunWaiting})
	s.equal("run", []any{out.Run.Status, out.Run.LeaseOwner, out.Run.Deaths}, []any{core.RunWaiting, "", 0})
	_, err := s.Runs.Claim(s.Context(), s.session.ID, worker)
	s.fails("claim while a run waits", err, core.ErrNotFound)
	asked := s.approvals(run.ID)
	decide := func(id core.ApprovalID, approve bool) (core.Decided, error) {
		return s.Runs.Decide(s.Context(), tenant(), run.ID, id, core.ApprovalDecision{Approve: approve, Comment: "why", By: "carol"})
	}
	_, err = decide(core.NewID[core.ApprovalID](), true)
	s.fails("unknown approval", err, core.ErrNotFound)
	_, err = s.Runs.Decide(s.Context(), tenant(), two.ID, asked[0].ID, core.ApprovalDecision{Approve: true})
	s.fails("approval of another run", err, core.ErrNotFound)
	got := must[core.Decided](s, "decide")(decide(asked[0].ID, true))
	s.equal("decided", []any{got.Approval.Status, got.Approval.Comment, got.Approval.DecidedBy, got.Run.Status}, []any{core.ApprovalApproved, "why", "carol", core.RunWaiting})
	s.equal("events", Types(got.Events), []core.EventType{core.EventApprovalDecided})
	s.equal("events of the same decision again", len(must[core.Decided](s, "decide again")(decide(asked[0].ID, true)).Events), 0)
	_, err = decide(asked[0].ID, false)
	s.fails("another decision", err, core.ErrConflict)
	got = must[core.Decided](s, "decide")(decide(asked[1].ID, false))
	s.equal("all decided", []any{got.Run.Status, got.Run.Suspended()}, []any{core.RunQueued, true})
	s.equal("allowed", s.allowed(s.session.ID), map[string]bool{"pay-1": true})
	s.equal("allowed in another session", len(s.allowed(s.create(core.Session{Owner: "ann"}).ID)), 0)

	claimed := s.claim(other)
	s.equal("first start", claimed.Run.StartedAt.Equal(*run.StartedAt), true)
	s.equal("claimed", []any{claimed.Run.ID, claimed.Run.Attempt, claimed.Run.Resumed, Types(claimed.Events)}, []any{run.ID, 2, true, []core.EventType{core.EventRunStarted}})
	s.equal("log", Contents(s.log()), []string{"one"})
	s.write(waitFor(claimed.Run, 0, "a"))
	s.equal("asked again", len(s.approvals(run.ID)), 2)
	s.equal("run without an open question", s.run(run.ID).Status, core.RunQueued)

	w = waitFor(s.claim(other).Run, 0, "a")
	w.Wait.Approvals[0].Definition = "pay-2"
	out = s.write(w)
	s.equal("events of a tool that has changed", Types(out.Events), []core.EventType{core.EventApprovalDecided, core.EventApprovalRequested, core.EventRunWaiting})
	asked = s.approvals(run.ID)
	s.equal("old question", []any{asked[0].Status, asked[0].Comment, asked[0].DecidedBy}, []any{core.ApprovalClosed, core.ApprovalChanged, "carol"})
	s.equal("new question", []any{asked[2].Status, asked[2].ToolCallID, asked[2].Definition}, []any{core.ApprovalOpen, "a", "pay-2"})
	s.equal("allowed before", len(s.allowed(s.session.ID)), 0)
}

// Results of a client's calls that come with a message are recorded, and the run that waits for
// them ends.
func testResultsWithMessage(s *suite) {
	run := s.accept(s.ask("hello")).Run
	w := waitFor(run, 0, "a", "b")
	w.Wait.Approvals[0].Kind = core.KindClientTool
	s.write(w)
	in := s.ask("and now?")
	in.Results = core.AnswerCalls{SessionID: s.session.ID, Results: []core.CallResult{{ToolCallID: "a", Result: "one"}, {ToolCallID: "x"}}}
	_, err := s.Runs.Accept(s.Context(), tenant(), in)
	s.fails("no such call", err, core.ErrNotFound)
	s.equal("status after a failure", s.approvals(run.ID)[0].Status, core.ApprovalOpen)
	in.Results.Results = in.Results.Results[:1]
	s.equal("instead", s.accept(in).Instead, true)
	asked, got := s.approvals(run.ID), s.run(run.ID)
	s.equal("answered", []any{asked[0].Status, asked[0].Result}, []any{core.ApprovalAnswered, "one"})
	s.equal("not answered", []any{asked[1].Status, asked[1].Comment}, []any{core.ApprovalClosed, core.ApprovalInstead})
	s.equal("run", []any{got.Status, got.CancelRequested}, []any{core.RunQueued, true})
}

// Questions end with a cancel, with another message, and with their time.
func testApprovalsEnd(s *suite) {
	wait := func(expiry time.Duration) core.Run {
		s.Helper()
		run := s.accept(s.ask("hello")).Run
		s.write(waitFor(run, expiry, "a"))
		return run
	}
	closed := func(what string, run core.Run, status core.ApprovalStatus, comment string, cancel bool) {
		s.Helper()
		a, got := s.approvals(run.ID)[0], s.run(run.ID)
		s.equal(what, []any{a.Status, a.Comment, got.Status, got.CancelRequested}, []any{status, comment, core.RunQueued, cancel})
		s.finish(s.claim(worker).Run)
	}
	run := wait(0)
	_, _, err := s.Runs.RequestCancel(s.Context(), tenant(), run.ID)
	s.succeeds("cancel", err)
	_, events, err := s.Runs.RequestCancel(s.Context(), tenant(), run.ID)
	s.succeeds("cancel again", err)
	s.equal("events of a second cancel", len(events), 0)
	closed("canceled", run, core.ApprovalClosed, core.ApprovalCanceled, true)

	run = wait(0)
	in := s.ask("reject")
	in.Multitask = core.MultitaskReject
	_, err = s.Runs.Accept(s.Context(), tenant(), in)
	s.fails("reject while a run waits", err, core.ErrConflict)
	instead := s.accept(s.ask("instead"))
	s.equal("instead", []any{instead.Instead, instead.Run.Status, Types(instead.Events)}, []any{true, core.RunQueued, []core.EventType{core.EventApprovalDecided, core.EventRunQueued}})
	s.equal("first event", []int64{instead.Run.FirstEvent, s.run(instead.Run.ID).FirstEvent}, []int64{instead.Events[1].Seq, instead.Events[1].Seq})
	closed("instead", run, core.ApprovalClosed, core.ApprovalInstead, true)
	s.finish(s.claim(worker).Run)

	run = wait(time.Hour)
	in = s.ask("enqueued")
	in.Multitask = core.MultitaskEnqueue
	s.equal("enqueued", s.accept(in).Instead, false)
	s.equal("events before the time", len(must[[]core.Event](s, "expire")(s.Runs.ExpireApprovals(s.Context(), 10))), 0)
	_, _, err = s.Runs.RequestCancel(s.Context(), tenant(), run.ID)
	s.succeeds("cancel", err)
	s.finish(s.claim(worker).Run)
	s.finish(s.claim(worker).Run)

	run = wait(time.Nanosecond)
	events = nil
	for len(events) == 0 && s.Context().Err() == nil {
		events = must[[]core.Event](s, "expire")(s.Runs.ExpireApprovals(s.Context(), 10))
	}
	s.equal("expired", Types(events), []core.EventType{core.EventApprovalDecided})
	closed("expired", run, core.ApprovalExpired, core.ApprovalTooLate, false)
}
