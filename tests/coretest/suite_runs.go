package coretest

import (
	"encoding/json"

	"bobbin/app/core"
)

// A run starts immediately if the session has nothing else to do; a repeated message returns its
// run.
func testAccept(s *suite) {
	in := s.ask("one")
	in.ClientMessageID = "c1"
	one := s.accept(in)
	if r := one.Run; r.Status != core.RunRunning || r.Attempt != 1 || r.LeaseOwner != worker || r.StartedAt == nil || one.Message.Seq != 1 {
		s.Errorf("got %+v with message %d, want the first attempt of the worker with its message in the log", r, one.Message.Seq)
	}
	two := s.accept(s.ask("two"))
	if r := two.Run; r.Status != core.RunQueued || r.Attempt != 0 || r.QueueSeq != one.Run.QueueSeq+1 || two.Message.Seq != 0 {
		s.Errorf("got %+v with message %d, want the next of the queue", r, two.Message.Seq)
	}
	s.equal("events of a queued run", Types(two.Events), []core.EventType{core.EventRunQueued})
	s.equal("first event of a queued run", []int64{two.Run.FirstEvent, s.run(two.Run.ID).FirstEvent}, []int64{two.Events[0].Seq, two.Events[0].Seq})
	s.equal("log", Contents(s.log()), []string{"one"})

	before := len(s.events(0))
	in.Multitask = core.MultitaskReject
	again := s.accept(in)
	s.equal("repeated", []any{again.Repeated, again.Run.ID, again.Message.ID, len(again.Events)}, []any{true, one.Run.ID, one.Message.ID, 0})
	s.equal("events after a repetition", len(s.events(0)), before)
	run, err := s.Runs.Repeated(s.Context(), tenant(), in.SessionID, in.ClientMessageID)
	s.equal("the run of the first time", []any{run.ID, err}, []any{one.Run.ID, nil})
	queued := s.ask("three")
	queued.ClientMessageID = "c3"
	first := s.accept(queued)
	s.equal("repeated in the queue", s.accept(queued).Run.ID, first.Run.ID)
	queued.SessionID = s.create(core.Session{Owner: "ann"}).ID
	s.equal("repeated in another session", s.accept(queued).Repeated, false)
	in.ClientMessageID = "c2"
	_, err = s.Runs.Repeated(s.Context(), tenant(), in.SessionID, in.ClientMessageID)
	s.fails("not repeated", err, core.ErrNotFound)
	_, err = s.Runs.Accept(s.Context(), tenant(), in)
	s.fails("multitask reject", err, core.ErrConflict)

	in = s.ask("four")
	in.SessionAgent = &core.SessionAgent{Agent: s.session.Agent, Model: s.session.Model}
	s.accept(in)
	in.SessionAgent.Model = "another"
	_, err = s.Runs.Accept(s.Context(), tenant(), in)
	s.fails("another model", err, core.ErrStale)
}

// The limits hold for the session, the owner and the user.
func testLimits(s *suite) {
	refused := func(what string, change func(*core.AcceptRun)) {
		s.Helper()
		in := s.ask("more")
		change(&in)
		_, err := s.Runs.Accept(s.Context(), tenant(), in)
		s.fails(what, err, core.ErrRateLimited)
	}
	in := s.ask("one")
	in.User, in.MaxQueued, in.MaxOwned, in.MaxOfUser = "carol", 1, 1, 1
	s.accept(in)
	refused("owner", func(in *core.AcceptRun) { in.MaxOwned = 1 })
	refused("user", func(in *core.AcceptRun) { in.User, in.MaxOfUser = "carol", 1 })
	in = s.ask("two")
	in.User, in.MaxQueued, in.MaxOwned, in.MaxOfUser = "dan", 1, 2, 1
	s.accept(in)
	refused("queue", func(in *core.AcceptRun) { in.MaxQueued = 1 })
}

// The oldest queued run starts when no other is active, once.
func testClaim(s *suite) {
	_, err := s.Runs.Claim(s.Context(), s.session.ID, worker)
	s.fails("nothing queued", err, core.ErrNotFound)
	one, two := s.accept(s.ask("one")).Run, s.accept(s.ask("two")).Run
	s.accept(s.ask("three"))
	_, err = s.Runs.Claim(s.Context(), s.session.ID, other)
	s.fails("while another run is active", err, core.ErrNotFound)
	s.finish(one)
	got := s.claim(other)
	if got.Run.ID != two.ID || got.Run.Status != core.RunRunning || got.Run.Attempt != 1 || got.Run.LeaseOwner != other || got.Run.Resumed {
		s.Errorf("got %+v, want the second run for the first time", got)
	}
	s.equal("message", []any{got.Message.Content, got.Message.Seq, got.Message.ParentID}, []any{"two", 3, s.log()[1].ID})
	s.equal("session", []any{got.Session.Status, got.Session.ActiveRunID}, []any{core.SessionRunning, two.ID})
	_, err = s.Runs.Claim(s.Context(), core.NewID[core.SessionID](), worker)
	s.fails("in an unknown session", err, core.ErrNotFound)
	s.equal("events", Types(got.Events), []core.EventType{core.EventRunStarted, core.EventMessageCreated})
	_, err = s.Runs.Claim(s.Context(), s.session.ID, other)
	s.fails("claimed again", err, core.ErrNotFound)
	s.equal("active", must[core.Run](s, "active")(s.Runs.Active(s.Context(), tenant(), s.session.ID)).ID, two.ID)
}

// The options of a run are kept with it, byte by byte, and reach each process that executes it.
func testOptions(s *suite) {
	first := s.ask("one")
	first.Worker = earlier
	one := s.accept(first).Run
	in := s.ask("two")
	in.Options = &core.RunOptions{
		ToolChoice: core.ToolChoiceRequired, Instructions: "a <b> & \"c\"", ParallelToolCalls: new(false),
		Tools: []core.ClientTool{{Name: "look", Parameters: json.RawMessage(`{"z":1,"a":{"b":2}}`)}},
	}
	in.Options.Seed = new(7)
	want := encode(s, in.Options)
	s.equal("accepted", encode(s, s.accept(in).Run.Options), want)
	s.finish(one)
	claimed := s.claim(earlier).Run
	s.equal("claimed", encode(s, claimed.Options), want)
	s.equal("taken over", encode(s, s.takeOver(worker, 1, 1)[0].Options), want)
	s.equal("read", encode(s, s.run(claimed.ID).Options), want)
	s.equal("none", s.run(one.ID).Options == nil, true)
}

// encode returns options as JSON.
func encode(s *suite, o *core.RunOptions) string {
	s.Helper()
	text, err := json.Marshal(o)
	s.succeeds("encode", err)
	return string(text)
}

// A write stores all that it has, in one step.
func testWrite(s *suite) {
	accepted := s.accept(s.ask("hello"))
	run := accepted.Run
	before := s.events(0)
	w := answerTo(run, "let me see")
	w.Known = accepted.Known
	w.Messages[0].ToolCalls = []core.ToolCall{{ID: "1", Name: "look"}}
	w.Messages = append(w.Messages, core.Message{ID: core.NewID[core.MessageID](), Role: core.RoleTool, Content: "seen", ToolCallID: "1"})
	w.Events = []core.Event{core.NewEvent(run.SessionID, "", core.EventToolFinished, core.ToolFinishedData{ToolCallID: "1"})}
	w.Usage, w.State, w.Context = core.Usage{InputTokens: 5, OutputTokens: 2}, json.RawMessage(`{}`), json.RawMessage(`{}`)
	w.Next = core.NewID[core.MessageID]()
	out := s.write(w)
	known := out.Known
	s.equal("messages", Contents(out.Messages), []string{"let me see", "seen"})
	s.equal("seqs", []int64{out.Messages[0].Seq, out.Messages[1].Seq}, []int64{2, 3})
	s.equal("run of the messages", []core.RunID{out.Messages[0].RunID, out.Messages[1].RunID}, []core.RunID{run.ID, run.ID})
	s.equal("events", Types(out.Events), []core.EventType{core.EventMessageCreated, core.EventMessageCreated, core.EventToolFinished})
	s.equal("stored events", Types(s.events(int64(len(before)))), Types(out.Events))
	s.equal("run of the event", out.Events[2].RunID, run.ID)
	got := s.run(run.ID)
	s.equal("writes after the first need not look", out.Known != nil, true)
	s.equal("usage, state, context", []any{got.Usage, string(got.State), string(got.Context)}, []any{w.Usage, "{}", "{}"})
	s.equal("draft", core.DecodeDraft(got.Partial), core.Draft{Attempt: 1, MessageID: w.Next})

	s.succeeds("partial", s.Runs.SavePartial(s.Context(), run.ID, run.Attempt, "half"))
	s.equal("partial", s.run(run.ID).Partial, "half")
	w = core.RunWrite{RunID: run.ID, SessionID: run.SessionID, Attempt: 1, Messages: out.Messages[:1], Usage: core.Usage{InputTokens: 1}}
	w.Messages[0].Content = "changed"
	w.Messages = append(w.Messages, core.Message{Role: core.RoleAssistant, Content: "without id"})
	out = s.write(w)
	s.equal("message that is in the log", Contents(out.Messages), []string{"let me see", "without id"})
	s.equal("new message", []any{len(out.Events), out.Messages[1].ID != ""}, []any{1, true})
	last := out.Messages[1].ID
	w = answerTo(run, "unknown")
	w.Known = known
	out = s.write(w)
	s.equal("parent, when the log has changed since", out.Messages[0].ParentID, last)
	s.equal("what is known then", out.Known, nil)

	w = answerTo(run, "done")
	w.Events = []core.Event{core.NewEvent(run.SessionID, "", core.EventContextWarning, core.ContextData{})}
	w.End = &core.RunEnd{Status: core.RunFailed, Error: &core.RunError{Code: "internal"}, AnswerID: w.Messages[0].ID}
	s.equal("events of the end", Types(s.write(w).Events), []core.EventType{core.EventMessageCreated, core.EventContextWarning, core.EventRunFailed})
	_, err := s.Runs.Active(s.Context(), tenant(), s.session.ID)
	s.fails("active run after the end", err, core.ErrNotFound)
	got = s.run(run.ID)
	if got.Status != core.RunFailed || got.Error == nil || got.Error.Code != "internal" || got.AnswerID != w.Messages[0].ID || got.FinishedAt == nil || got.LeaseOwner != "" || got.Partial != "" {
		s.Errorf("got %+v, want a failed run without lease and draft", got)
	}
	s.equal("usage", got.Usage.InputTokens, 6)
	s.equal("log", Contents(s.log()), []string{"hello", "let me see", "seen", "without id", "unknown", "done"})
}

// A write that is repeated counts once, also the one that ended the run.
func testRepeatedWrite(s *suite) {
	run := s.accept(s.ask("hello")).Run
	w := answerTo(run, "hi")
	w.ID, w.Usage = core.NewID[string](), core.Usage{OutputTokens: 2}
	w.End = &core.RunEnd{Status: core.RunSucceeded, AnswerID: w.Messages[0].ID}
	first := s.write(w)
	again := s.write(w)
	s.equal("messages", Contents(again.Messages), Contents(first.Messages))
	s.equal("run", []any{again.Run.ID, again.Run.Status, s.run(run.ID).Usage.OutputTokens}, []any{run.ID, core.RunSucceeded, 2})
	s.equal("log and events", []int{len(s.log()), len(s.events(0))}, []int{2, 4})
}

// An attempt that is over changes nothing: the run was taken over, or has ended.
func testFencing(s *suite) {
	run := s.accept(s.ask("hello")).Run
	s.succeeds("release", s.Runs.Release(s.Context(), worker))
	last := answerTo(run, "until another worker takes the run over")
	last.ID = core.NewID[string]()
	s.write(last)
	s.takeOver(other, 0, 1)
	before := len(s.events(0))
	stale := func(what string) {
		s.Helper()
		for name, w := range map[string]core.RunWrite{
			"message": answerTo(run, "late"), "wait": waitFor(run, 0, "late"), "end": {End: &core.RunEnd{Status: core.RunFailed}},
			"event": {Events: []core.Event{core.NewEvent(run.SessionID, run.ID, core.EventNodeStarted, nil)}},
			"calls": {ModelCalls: []core.ModelCall{{Purpose: core.PurposeAnswer, Model: "m"}}, Usage: core.Usage{InputTokens: 7}, State: []byte(`{}`)},
		} {
			w.RunID, w.SessionID, w.Attempt = run.ID, run.SessionID, run.Attempt
			s.fails(what+": Write of "+name, failed(s.Runs.Write(s.Context(), w)), core.ErrStale)
		}
		for name, call := range map[string]func() error{
			"SavePartial": func() error { return s.Runs.SavePartial(s.Context(), run.ID, run.Attempt, "late") },
			"StartTools": func() error {
				return s.Runs.StartTools(s.Context(), run.ID, run.Attempt, []core.ToolExecution{{CallID: "1"}})
			},
			"CountDeath": func() error { return s.Runs.CountDeath(s.Context(), run.ID, run.Attempt, 9) },
			"Yield":      func() error { return s.Runs.Yield(s.Context(), run.ID, run.Attempt) },
		} {
			s.fails(what+": "+name, call(), core.ErrStale)
		}
	}
	foreign := answerTo(run, "elsewhere")
	foreign.SessionID = s.create(core.Session{Owner: "ann"}).ID
	_, err := s.Runs.Write(s.Context(), foreign)
	s.fails("write to another session", err, core.ErrStale)
	s.fails("the last write again", failed(s.Runs.Write(s.Context(), last)), core.ErrStale)
	stale("taken over")
	got := s.run(run.ID)
	s.equal("run", []any{got.Attempt, got.LeaseOwner, got.Partial, got.Deaths, got.Usage.InputTokens}, []any{2, other, "", 0, 0})
	s.equal("log and events", []int{len(s.log()), len(s.events(0))}, []int{2, before})
	run = got
	s.finish(run)
	stale("ended")
}

// The start of a tool is known before it runs; its result ends it.
func testTools(s *suite) {
	run := s.accept(s.ask("hello")).Run
	s.succeeds("start", s.Runs.StartTools(s.Context(), run.ID, 1, []core.ToolExecution{
		{CallID: "1", Tool: "pay", StartedAt: core.Now()}, {CallID: "2", Tool: "pay", StartedAt: core.Now()},
	}))
	w := answerTo(run, "calls")
	w.Messages[0].ToolCalls = []core.ToolCall{{ID: "1", Name: "pay"}}
	w.Messages = append(w.Messages, core.Message{ID: core.NewID[core.MessageID](), Role: core.RoleTool, Content: "paid", ToolCallID: "1"})
	s.write(w)
	list := must[[]core.ToolExecution](s, "executions")(s.Runs.ToolExecutions(s.Context(), run.ID))
	if len(list) != 2 || list[0].CallID != "1" || list[0].FinishedAt == nil || list[1].FinishedAt != nil || list[1].Attempt != 1 || list[1].Owner != "ann" {
		s.Errorf("got executions %+v, want the first finished and the second not", list)
	}
}

// A queued run ends immediately, a running one is marked, one that has ended stays.
func testCancel(s *suite) {
	one, two := s.accept(s.ask("one")).Run, s.accept(s.ask("two")).Run
	cancel := func(run core.Run) (core.Run, []core.Event) {
		s.Helper()
		got, events, err := s.Runs.RequestCancel(s.Context(), tenant(), run.ID)
		s.succeeds("cancel", err)
		return got, events
	}
	got, events := cancel(two)
	s.equal("queued", []any{got.Status, got.FinishedAt != nil, Types(events)}, []any{core.RunCanceled, true, []core.EventType{core.EventRunCanceled}})
	_, events = cancel(two)
	s.equal("events of a second cancel", len(events), 0)
	cancel(one)
	got, events = cancel(one)
	s.equal("running", []any{got.Status, got.CancelRequested, len(events)}, []any{core.RunRunning, true, 0})
	s.equal("of the worker", must[[]core.RunID](s, "cancel requested")(s.Runs.CancelRequested(s.Context(), worker)), []core.RunID{one.ID})
	s.equal("of another worker", len(must[[]core.RunID](s, "cancel requested")(s.Runs.CancelRequested(s.Context(), other))), 0)
	_, err := s.Runs.Write(s.Context(), waitFor(one, 0, "a"))
	s.fails("wait of a run that is to be canceled", err, core.ErrCanceled)
	s.write(core.RunWrite{RunID: one.ID, SessionID: one.SessionID, Attempt: 1, End: &core.RunEnd{Status: core.RunCanceled}})
	got, events = cancel(one)
	s.equal("ended", []any{got.Status, len(events)}, []any{core.RunCanceled, 0})
}
