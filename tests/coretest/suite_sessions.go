package coretest

import (
	"encoding/json"
	"errors"
	"fmt"

	"bobbin/app/core"
)

// A session gets what is missing; its changes are events; an archived one takes no runs.
func testSessions(s *suite) {
	if got := s.get(); got.ID == "" || got.CreatedAt.IsZero() || !got.UpdatedAt.Equal(got.CreatedAt) || got.Status != core.SessionIdle || got.UserID != "carol" {
		s.Errorf("got session %+v, want an idle one of carol with id and times", got)
	}
	_, err := s.Sessions.Create(s.Context(), core.Session{ID: s.session.ID, Owner: "ann"})
	s.fails("create with an id that exists", err, core.ErrConflict)
	_, err = s.Sessions.Create(s.Context(), core.Session{})
	s.fails("create without owner", err, core.ErrInvalid)

	_, events, err := s.Sessions.Update(s.Context(), tenant(), s.session.ID, core.SessionPatch{})
	s.succeeds("update without fields", err)
	s.equal("events of an empty patch", len(events)+len(s.events(0)), 0)
	title := "about tests"
	updated, events, err := s.Sessions.Update(s.Context(), tenant(), s.session.ID, core.SessionPatch{Title: &title, Metadata: json.RawMessage(`{"a":1}`)})
	s.succeeds("update", err)
	s.equal("title", []string{updated.Title, s.get().Title, s.get().Agent}, []string{title, title, "assistant"})
	s.equal("events of an update", Types(events), []core.EventType{core.EventSessionUpdated})
	s.equal("title in the event", Data[core.SessionData](events[0]).Session.Title, title)
	s.equal("number of the event", events[0].Seq, 1)

	archive := func(archived bool) []core.Event {
		_, events, err := s.Sessions.Update(s.Context(), tenant(), s.session.ID, core.SessionPatch{Archived: &archived})
		s.succeeds("archive", err)
		return events
	}
	s.equal("events of archiving", Types(archive(true)), []core.EventType{core.EventSessionUpdated})
	s.equal("events of archiving and bringing back", len(archive(false))+len(archive(false))+len(archive(true)), 2)
	first := s.get().ArchivedAt
	s.equal("events of archiving again", len(archive(true)), 0)
	if again := s.get().ArchivedAt; first == nil || !again.Equal(*first) {
		s.Errorf("archived at %v, then at %v, want the first time", first, again)
	}
	_, err = s.Runs.Accept(s.Context(), tenant(), s.ask("hello"))
	s.fails("run of an archived session", err, core.ErrConflict)
}

// A session shows what its runs do.
func testStatuses(s *suite) {
	status := func(what string, want core.SessionStatus, run core.RunID, open int) {
		s.Helper()
		got := s.get()
		s.equal(what, []any{got.Status, got.ActiveRunID, got.OpenApprovals}, []any{want, run, open})
	}
	status("new", core.SessionIdle, "", 0)
	in := s.ask("one")
	in.Worker = ""
	one := s.accept(in).Run
	s.equal("behind a queue", s.accept(s.ask("two")).Run.Status, core.RunQueued)
	status("accepted without a worker", core.SessionQueued, one.ID, 0)
	one = s.claim(worker).Run
	status("claimed", core.SessionRunning, one.ID, 0)
	s.write(waitFor(one, 0, "a", "b"))
	status("waiting", core.SessionWaiting, one.ID, 2)
}

// The log is in order and without gaps; readers get the part that they ask for.
func testMessages(s *suite) {
	log := s.turns(3)
	want := []string{"question 0", "re: question 0", "question 1", "re: question 1", "question 2", "re: question 2"}
	s.equal("log", Contents(log), want)
	var parent core.MessageID
	for i, m := range log {
		s.equal("seq", m.Seq, i+1)
		s.equal("parent", m.ParentID, parent)
		s.equal("on path, status", []any{m.OnPath, m.Status, m.Owner}, []any{true, core.MessageComplete, "ann"})
		parent = m.ID
	}
	after := func(id core.MessageID) []core.Message {
		return must[[]core.Message](s, "messages after")(s.Messages.GetMessagesAfter(s.Context(), tenant(), s.session.ID, id))
	}
	s.equal("messages after one", Contents(after(log[3].ID)), want[4:])
	s.equal("messages after the last", len(after(log[5].ID)), 0)
	_, err := s.Messages.GetMessagesAfter(s.Context(), tenant(), s.session.ID, core.NewID[core.MessageID]())
	s.fails("messages after one that does not exist", err, core.ErrNotFound)

	some := must[[]core.Message](s, "get messages")(s.Messages.GetMessages(s.Context(), tenant(), s.session.ID, []core.MessageID{log[4].ID, core.NewID[core.MessageID](), log[1].ID}))
	s.equal("messages by id, one unknown", Contents(some), []string{want[1], want[4]})
	anywhere := func(t core.Tenant) []core.Message {
		return must[[]core.Message](s, "get messages of any session")(s.Messages.GetMessages(s.Context(), t, "", []core.MessageID{log[4].ID, core.NewID[core.MessageID](), log[1].ID}))
	}
	s.equal("messages of any session", Contents(anywhere(tenant())), []string{want[1], want[4]})
	s.equal("messages of another owner", len(anywhere(core.Tenant{Owner: "ben"})), 0)
	s.equal("messages of another user", len(anywhere(core.Tenant{Owner: tenant().Owner, User: "nobody"})), 0)
	s.equal("message by id", must[core.Message](s, "get message")(s.Messages.Get(s.Context(), tenant(), s.session.ID, log[2].ID)).Content, want[2])
	_, err = s.Messages.Get(s.Context(), tenant(), s.session.ID, core.NewID[core.MessageID]())
	s.fails("message that does not exist", err, core.ErrNotFound)
	s.equal("count", must[int](s, "count")(s.Messages.CountOnPath(s.Context(), tenant(), s.session.ID, 6)), 6)
	s.equal("count up to a message", must[int](s, "count")(s.Messages.CountOnPath(s.Context(), tenant(), s.session.ID, log[1].Seq)), 2)
	s.equal("counters", []any{s.get().LastSeq, s.get().MessageCount}, []any{6, 6})
	s.equal("pinned", len(must[[]core.Message](s, "pinned")(s.Messages.Pinned(s.Context(), tenant(), s.session.ID))), 0)
}

// A message keeps the user who wrote it. From the second speaker's first message on, and in a
// session of many speakers from its first one on, the users' messages carry names in prompts.
func testSpeakers(s *suite) {
	for _, c := range []struct {
		user, author string
		named        bool
	}{
		{"", "", false}, {"u1", "Ann", false}, {"", "", false}, {"u1", "", false}, {"u1", "Ann Lee", false},
		{"u2", "Ben", true}, {"u1", "Ann", true}, {"", "", true},
	} {
		in := s.ask("hello")
		in.User, in.Input.Author = c.user, c.author
		run := s.accept(in).Run
		s.finish(run)
		m := must[core.Message](s, "message")(s.Messages.Get(s.Context(), tenant(), s.session.ID, run.UserMessageID))
		s.equal("author", []string{m.AuthorID, m.Author}, []string{c.user, c.author})
		s.equal("named, after "+c.user, m.Named, c.named)
	}
	for _, m := range s.log() {
		s.equal("named", m.Named, m.Role == core.RoleUser && m.Seq > 10)
	}
	s.equal("speakers", s.get().Speakers, core.ManySpeakers)

	second := s.create(core.Session{Owner: "ann", Agent: "assistant", Speakers: core.ManySpeakers})
	in := s.ask("hello")
	in.SessionID, in.User = second.ID, "u1"
	s.equal("named in a session of many", s.accept(in).Message.Named, true)

	third := s.create(core.Session{Owner: "ann", Agent: "assistant"})
	for i, author := range []string{"Ann", "Ann", "Ben"} {
		in := s.ask("hello")
		in.SessionID, in.Input.Author = third.ID, author
		accepted := s.accept(in)
		s.finish(accepted.Run)
		s.equal("named without ids, by "+author, accepted.Message.Named, i == 2)
	}
}

// Events are numbered without gaps, committed with what they report, and read in pages.
func testEvents(s *suite) {
	accepted := s.accept(s.ask("hello"))
	written := s.finish(accepted.Run)
	all := s.events(0)
	s.equal("types", Types(all), []core.EventType{core.EventRunStarted, core.EventMessageCreated, core.EventMessageCreated, core.EventRunSucceeded})
	for i, e := range all {
		s.equal("number", e.Seq, i+1)
		s.equal("session and run", []any{e.SessionID, e.RunID}, []any{s.session.ID, accepted.Run.ID})
	}
	s.equal("events of the calls", append(Types(accepted.Events), Types(written.Events)...), Types(all))
	s.equal("first event of the run", accepted.Run.FirstEvent, 1)
	started, ended := Data[core.RunData](all[0]).Run, Data[core.RunData](all[3]).Run
	s.equal("run.started", []any{started.Status, started.Input.Content}, []any{core.RunRunning, ""})
	s.equal("run.succeeded", []any{ended.Status, ended.AnswerID}, []any{core.RunSucceeded, written.Messages[0].ID})
	s.equal("message.created", Data[core.MessageData](all[2]).Message.Content, "re: hello")

	page, more, err := s.Events.Page(s.Context(), s.session.ID, 1, 2)
	s.succeeds("page", err)
	s.equal("page", []any{Types(page), more}, []any{Types(all[1:3]), true})
	s.equal("last", must[int64](s, "last")(s.Events.Last(s.Context(), tenant(), s.session.ID)), 4)
	none := core.NewID[core.SessionID]()
	of := must[map[core.SessionID]int64](s, "last of")(s.Events.LastOf(s.Context(), []core.SessionID{s.session.ID, none}))
	s.equal("last of two, one unknown", of, map[core.SessionID]int64{s.session.ID: 4})
}

// failed and failedOf return the error of a call.
func failed[T any](_ T, err error) error           { return err }
func failedOf[T, U any](_ T, _ U, err error) error { return err }

// Whoever is outside of the tenant finds nothing: another owner, another user of the owner, the
// user of another owner, nobody. Nor does anybody find what does not exist.
func testTenants(s *suite) {
	log := s.turns(1)
	s.apply(core.ContextChange{Summary: summaryOf(log[:1], core.SummaryActive)})
	s.apply(core.ContextChange{Summary: summaryOf(log, core.SummaryActive)})
	run, title, ctx := s.accept(s.ask("hello")).Run, "mine", s.Context()
	events, revision := len(s.events(0)), s.get().PromptRevision
	calls := func(t core.Tenant, id core.SessionID, run core.RunID, m core.MessageID) map[string]error {
		in := s.ask("mine")
		in.SessionID = id
		return map[string]error{
			"Sessions.Get":   failed(s.Sessions.Get(ctx, t, id)),
			"Update":         failedOf(s.Sessions.Update(ctx, t, id, core.SessionPatch{Title: &title})),
			"ApplyContext":   failedOf(s.Sessions.ApplyContext(ctx, t, core.ContextChange{SessionID: id})),
			"RestoreSummary": failedOf(s.Sessions.RestoreSummary(ctx, t, core.SummaryRestore{SessionID: id, Version: 1, Expect: revision})),
			"SummaryWork":    failed(s.Sessions.SummaryWork(ctx, t, id)),
			"SummaryFailed":  failed(s.Sessions.SummaryFailed(ctx, t, core.SummaryFailure{SessionID: id, Reason: "none"})),
			"LeaseSummary":   failed(s.Sessions.LeaseSummary(ctx, t, id, other, core.RunLease)),

			"GetMessagesAfter":      failed(s.Messages.GetMessagesAfter(ctx, t, id, "")),
			"GetMessagesAfter, one": failed(s.Messages.GetMessagesAfter(ctx, t, id, m)),
			"GetMessages":           failed(s.Messages.GetMessages(ctx, t, id, []core.MessageID{m})),
			"Messages.Get":          failed(s.Messages.Get(ctx, t, id, m)),
			"Pinned":                failed(s.Messages.Pinned(ctx, t, id)),
			"CountOnPath":           failed(s.Messages.CountOnPath(ctx, t, id, 1)),

			"Summaries.List": failed(s.Summaries.List(ctx, t, id, core.PageQuery{})),
			"Summaries.Get":  failed(s.Summaries.Get(ctx, t, id, 1)),
			"Before":         failed(s.Summaries.Before(ctx, t, id, 2)),
			"Restorable":     failed(s.Summaries.Restorable(ctx, t, id, 1)),
			"FirstCovering":  failed(s.Summaries.FirstCovering(ctx, t, id, 1)),
			"Versions":       failed(s.Summaries.Versions(ctx, t, id)),
			"Covered":        failed(s.Summaries.Covered(ctx, t, id)),
			"Loops":          failed(s.Summaries.Loops(ctx, t, id, 0)),

			"Last":          failed(s.Events.Last(ctx, t, id)),
			"Accept":        failed(s.Runs.Accept(ctx, t, in)),
			"Runs.Get":      failed(s.Runs.Get(ctx, t, run)),
			"Active":        failed(s.Runs.Active(ctx, t, id)),
			"RequestCancel": failedOf(s.Runs.RequestCancel(ctx, t, run)),
		}
	}
	check := func(who string, errs map[string]error) {
		for name, err := range errs {
			s.fails(name+" by "+who, err, core.ErrNotFound)
		}
	}
	for _, eve := range []core.Tenant{{Owner: "eve"}, {Owner: "ann", User: "eve"}, {Owner: "eve", User: "carol"}, {}} {
		check(fmt.Sprint(eve), calls(eve, s.session.ID, run.ID, log[0].ID))
		check("Decide", map[string]error{fmt.Sprint(eve): failed(s.Runs.Decide(ctx, eve, run.ID, core.NewID[core.ApprovalID](), core.ApprovalDecision{}))})
	}
	check("of nothing", calls(tenant(), core.NewID[core.SessionID](), core.NewID[core.RunID](), core.NewID[core.MessageID]()))
	check("of nonsense", calls(tenant(), "1' OR", "y", "x"))
	s.equal("session", []any{s.get().Title, s.get().PromptRevision, len(s.log()), len(s.events(0)), s.run(run.ID).CancelRequested}, []any{"", revision, 3, events, false})
	for _, hers := range []core.Tenant{tenant(), {Owner: "ann", User: "carol"}} {
		for name, err := range calls(hers, s.session.ID, run.ID, log[0].ID) {
			if errors.Is(err, core.ErrNotFound) {
				s.Errorf("%s of her own by %v: got %v", name, hers, err)
			}
		}
	}
}
