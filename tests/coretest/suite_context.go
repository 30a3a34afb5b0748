package coretest

import (
	"time"

	"bobbin/app/core"
)

// summaryOf is a summary of the first messages of the log.
func summaryOf(log []core.Message, state core.SummaryState) *core.Summary {
	last := log[len(log)-1]
	return &core.Summary{
		ID: core.NewID[core.SummaryID](), Kind: core.SummaryRolling, State: state, Content: "what was said", FromID: log[0].ID, ThroughID: last.ID,
		FromSeq: log[0].Seq, ThroughSeq: last.Seq, MessagesCovered: len(log), TokenCount: 9, TokensCovered: 90, Model: "writer",
	}
}

// loopOf is notes on messages of a tool loop.
func loopOf(log []core.Message) *core.Summary {
	v := summaryOf(log, core.SummaryActive)
	v.Kind = core.SummaryRun
	return v
}

// apply applies a change to the session as it is.
func (s *suite) apply(c core.ContextChange) (core.Session, []core.Event) {
	s.Helper()
	c.SessionID, c.Expect = s.session.ID, s.get().PromptRevision
	session, events, err := s.Sessions.ApplyContext(s.Context(), tenant(), c)
	s.succeeds("apply", err)
	return session, events
}

// stale applies a change that must be refused, and must not change anything.
func (s *suite) stale(what string, c core.ContextChange) {
	s.Helper()
	before, events, versions := s.get(), len(s.events(0)), len(s.states())
	c.SessionID = s.session.ID
	_, _, err := s.Sessions.ApplyContext(s.Context(), tenant(), c)
	s.fails(what, err, core.ErrStale)
	after := s.get()
	s.equal(what+": session", []any{after.PromptRevision, after.SummaryVersion, after.SummaryCount}, []any{before.PromptRevision, before.SummaryVersion, before.SummaryCount})
	s.equal(what+": events and versions", []int{len(s.events(0)), len(s.states())}, []int{events, versions})
}

// states returns the states of all versions, the oldest first.
func (s *suite) states() []core.SummaryState {
	s.Helper()
	page := must[core.Page[core.Summary]](s, "list")(s.Summaries.List(s.Context(), tenant(), s.session.ID, core.PageQuery{Limit: 100}))
	out := make([]core.SummaryState, len(page.Items))
	for i, v := range page.Items {
		s.equal("version in the list", v.Version, len(page.Items)-i)
		out[v.Version-1] = v.State
	}
	return out
}

// versions returns the numbers of the versions that a prompt can use.
func (s *suite) versions() []int {
	s.Helper()
	out := []int{}
	for _, v := range must[[]core.SummaryVersion](s, "versions")(s.Summaries.Versions(s.Context(), tenant(), s.session.ID)) {
		out = append(out, v.Version)
	}
	return out
}

func (s *suite) work() core.SummaryWork {
	s.Helper()
	return must[core.SummaryWork](s, "work")(s.Sessions.SummaryWork(s.Context(), tenant(), s.session.ID))
}

// A summary becomes the session's in a compare-and-set, together with its events.
func testContext(s *suite) {
	log := s.turns(3)
	completed := core.NewEvent(s.session.ID, "", core.EventContextCompleted, core.ContextData{Trigger: "share"})
	first := summaryOf(log[:2], core.SummaryActive)
	got, events := s.apply(core.ContextChange{Summary: first, PromptState: []byte("{}"), Events: []core.Event{completed}})
	s.equal("session", []any{got.SummaryVersion, got.SummaryThroughSeq, got.SummarizedCount, got.SummaryTokens, got.SummaryCovered, got.PromptRevision, got.SummaryCount}, []any{1, 2, 2, 9, 90, 1, 1})
	stored := s.get()
	s.equal("stored", []any{*stored.ConversationSummary, *stored.SummaryThroughID, string(stored.PromptState)}, []any{"what was said", log[1].ID, "{}"})
	s.equal("event", []any{Types(events), Data[core.ContextData](events[0]).Version, events[0].Seq}, []any{[]core.EventType{core.EventContextCompleted}, 1, stored.LastEventSeq})
	s.stale("revision of before", core.ContextChange{Expect: 0, Summary: summaryOf(log[:4], core.SummaryActive), Events: []core.Event{completed}})

	s.apply(core.ContextChange{Summary: summaryOf(log[:4], core.SummaryActive)})
	got, _ = s.apply(core.ContextChange{PromptState: []byte("{}")})
	s.equal("prompt state alone", []any{got.PromptRevision, got.SummaryVersion, got.SummaryCount}, []any{3, 2, 2})
	s.equal("prompt state that is not set", string(s.get().PromptState), "{}")
	s.equal("states", s.states(), []core.SummaryState{core.SummaryDropped, core.SummaryActive})
	s.equal("versions", s.versions(), []int{1, 2})
	one := 1
	got, _ = s.apply(core.ContextChange{Activate: &one})
	s.equal("activated again", []any{got.SummaryVersion, got.SummaryThroughSeq}, []any{1, 2})
	s.equal("states", s.states(), []core.SummaryState{core.SummaryActive, core.SummaryDropped})
	revision, nine, none := got.PromptRevision, 9, 0
	s.stale("version in use", core.ContextChange{Expect: revision, Activate: &one})
	s.stale("version that does not exist", core.ContextChange{Expect: revision, Activate: &nine})
	got, _ = s.apply(core.ContextChange{Activate: &none})
	if got.SummaryVersion != 0 || got.ConversationSummary != nil || got.SummaryThroughID != nil || got.SummaryThroughSeq != 0 || got.SummarizedCount != 0 {
		s.Errorf("got %+v, want no summary", got)
	}
	found := must[[]core.Summary](s, "find")(s.Summaries.Find(s.Context(), tenant(), s.session.ID, []core.SummaryID{first.ID, core.NewID[core.SummaryID]()}))
	if len(found) != 1 || found[0].Version != 1 || found[0].Content != first.Content || found[0].ActivatedAt == nil {
		s.Errorf("got %+v, want the first version", found)
	}
}

// A prepared summary changes no prompt; there is one, and it goes with the summary it extends.
func testPrepared(s *suite) {
	log := s.turns(4)
	s.apply(core.ContextChange{Summary: summaryOf(log[:2], core.SummaryActive)})
	got, _ := s.apply(core.ContextChange{Summary: summaryOf(log[:4], core.SummaryPrepared), PromptState: []byte(`{"a":1}`)})
	s.equal("session", []any{got.SummaryVersion, got.PromptRevision, got.SummaryCount, len(got.PromptState)}, []any{1, 1, 1, 0})
	s.equal("prepared", []any{s.work().Prepared.Version, s.work().Prepared.ThroughSeq, s.work().Revision}, []any{2, 4, 1})
	s.apply(core.ContextChange{Summary: summaryOf(log[:6], core.SummaryPrepared)})
	s.equal("states", s.states(), []core.SummaryState{core.SummaryActive, core.SummaryDropped, core.SummaryPrepared})
	s.equal("versions", s.versions(), []int{1, 3})
	three := 3
	got, _ = s.apply(core.ContextChange{Activate: &three})
	s.equal("activated", []any{got.SummaryVersion, got.SummaryThroughSeq, s.work().Prepared.Version}, []any{3, 6, 0})
	s.equal("states", s.states(), []core.SummaryState{core.SummaryDropped, core.SummaryDropped, core.SummaryActive})
	two := 2
	s.stale("version that was never used", core.ContextChange{Expect: got.PromptRevision, Activate: &two})
	s.apply(core.ContextChange{Summary: summaryOf(log[:7], core.SummaryPrepared)})
	s.apply(core.ContextChange{Summary: summaryOf(log, core.SummaryActive)})
	s.equal("states after another summary", s.states()[3:], []core.SummaryState{core.SummaryDropped, core.SummaryActive})
}

// A native summary goes with its version: it comes into use, is refused, is repeated and is erased
// with it.
func testNative(s *suite) {
	log := s.turns(3)
	cost := int64(7)
	native := core.NativeSummary{
		Part: core.Part{Type: core.PartCompaction, Text: "the provider's words", Signature: "signed", Name: "cmp_1", Origin: "maker/model"},
		Text: "the provider's words", Model: "model", Tokens: 12, Usage: core.Usage{InputTokens: 100, OutputTokens: 12}, Cost: &cost,
		Account: "account", Origin: "maker/model", Setup: "setup", Start: "start", Prefixes: []string{"prefix", "earlier"},
	}
	stored := func(n *core.NativeSummary) core.NativeSummary {
		s.Helper()
		if n == nil || n.Cost == nil || *n.Cost != cost {
			s.Fatalf("got %+v, want a native summary with its cost", n)
		}
		out := *n
		out.Cost = &cost
		return out
	}
	with := func(v *core.Summary) *core.Summary {
		own := native
		v.Native = &own
		return v
	}
	got, _ := s.apply(core.ContextChange{Summary: with(summaryOf(log[:2], core.SummaryPrepared))})
	s.equal("prepared", got.NativeSummary, (*core.NativeSummary)(nil))
	one, none := 1, 0
	got, _ = s.apply(core.ContextChange{Activate: &one})
	s.equal("activated", stored(got.NativeSummary), native)
	s.equal("stored", stored(s.get().NativeSummary), native)
	got, _ = s.apply(core.ContextChange{Refused: "forged"})
	native.Refused = "forged"
	s.equal("refused", []any{stored(got.NativeSummary), got.SummaryVersion, got.PromptRevision}, []any{native, 1, 2})
	s.equal("refused version", stored(must[core.Summary](s, "get")(s.Summaries.Get(s.Context(), tenant(), s.session.ID, 1)).Native), native)
	got, _ = s.apply(core.ContextChange{Summary: summaryOf(log[:4], core.SummaryActive)})
	s.equal("version without one", got.NativeSummary, (*core.NativeSummary)(nil))
	got, _ = s.apply(core.ContextChange{Refused: "nothing to refuse"})
	s.equal("nothing refused", []any{got.NativeSummary, got.PromptRevision}, []any{(*core.NativeSummary)(nil), 4})
	got, _ = s.apply(core.ContextChange{Activate: &one})
	s.equal("activated again", stored(got.NativeSummary), native)
	got, _ = s.apply(core.ContextChange{Activate: &none})
	s.equal("no summary", got.NativeSummary, (*core.NativeSummary)(nil))
	s.apply(core.ContextChange{Activate: &one})
	if s.Branches == nil { // the Store of this package
		return
	}
	_, _, err := s.revise(log[0].ID, "other words")
	s.succeeds("revise", err)
	s.equal("erased", []any{s.get().NativeSummary, must[core.Summary](s, "get")(s.Summaries.Get(s.Context(), tenant(), s.session.ID, 1)).Native},
		[]any{(*core.NativeSummary)(nil), (*core.NativeSummary)(nil)})
}

// Notes on a tool loop leave the session's summary alone; longer ones and a summary replace them.
func testLoops(s *suite) {
	log := s.turns(4)
	loops := func(after int64) []int {
		s.Helper()
		out := []int{}
		for _, v := range must[[]core.Summary](s, "loops")(s.Summaries.Loops(s.Context(), tenant(), s.session.ID, after)) {
			out = append(out, v.Version)
		}
		return out
	}
	s.apply(core.ContextChange{Summary: loopOf(log[2:4])})
	completed := core.NewEvent(s.session.ID, "", core.EventContextCompleted, core.ContextData{})
	got, events := s.apply(core.ContextChange{Summary: loopOf(log[2:6]), Events: []core.Event{completed}})
	s.equal("version in the event", Data[core.ContextData](events[0]).Version, 2)
	s.equal("session", []any{got.SummaryVersion, got.SummaryCount}, []any{0, 2})
	s.equal("states", s.states(), []core.SummaryState{core.SummaryDropped, core.SummaryActive})
	s.equal("loops", [][]int{loops(0), loops(2), loops(3)}, [][]int{{2}, {2}, {}})
	s.apply(core.ContextChange{Summary: summaryOf(log[:6], core.SummaryActive)})
	s.equal("states after a summary", s.states(), []core.SummaryState{core.SummaryDropped, core.SummaryDropped, core.SummaryActive})
	s.equal("versions", s.versions(), []int{3})
	none := 0
	s.apply(core.ContextChange{Activate: &none})
	s.equal("states without it", s.states(), []core.SummaryState{core.SummaryDropped, core.SummaryActive, core.SummaryDropped})
}

// An earlier version comes back as a new one; later versions no longer come back by themselves.
func testRestore(s *suite) {
	log := s.turns(3)
	restorable := func(version int) error {
		_, err := s.Summaries.Restorable(s.Context(), tenant(), s.session.ID, version)
		return err
	}
	s.apply(core.ContextChange{Summary: summaryOf(log[:2], core.SummaryActive)})
	s.apply(core.ContextChange{Summary: summaryOf(log[:4], core.SummaryActive)})
	s.apply(core.ContextChange{Summary: loopOf(log[4:])})
	s.apply(core.ContextChange{Summary: summaryOf(log[:5], core.SummaryPrepared)})
	s.fails("unknown version", restorable(9), core.ErrNotFound)
	s.fails("notes on a loop", restorable(3), core.ErrUnprocessable)
	s.fails("never used", restorable(4), core.ErrUnprocessable)
	s.succeeds("earlier version", restorable(1))
	s.equal("before 4", must[core.Summary](s, "before")(s.Summaries.Before(s.Context(), tenant(), s.session.ID, 4)).Version, 2)
	_, err := s.Summaries.Before(s.Context(), tenant(), s.session.ID, 1)
	s.fails("before the first", err, core.ErrNotFound)
	for seq, want := range map[int64]int{1: 1, 3: 2, 5: 0} {
		s.equal("first covering", must[int](s, "first covering")(s.Summaries.FirstCovering(s.Context(), tenant(), s.session.ID, seq)), want)
	}

	in := core.SummaryRestore{SessionID: s.session.ID, Version: 1, Expect: s.get().PromptRevision}
	in.Events = []core.Event{core.NewEvent(s.session.ID, "", core.EventContextCompleted, core.ContextData{})}
	got, events, err := s.Sessions.RestoreSummary(s.Context(), tenant(), in)
	s.succeeds("restore", err)
	s.equal("session", []any{got.SummaryVersion, got.SummaryThroughSeq, got.PromptRevision, Data[core.ContextData](events[0]).Version}, []any{5, 2, in.Expect + 1, 5})
	s.equal("states", s.states(), []core.SummaryState{core.SummaryDropped, core.SummaryUndone, core.SummaryActive, core.SummaryUndone, core.SummaryActive})
	s.equal("trigger", must[core.Summary](s, "get")(s.Summaries.Get(s.Context(), tenant(), s.session.ID, 5)).Trigger, core.TriggerRestore)
	s.equal("versions", s.versions(), []int{5})
	_, _, err = s.Sessions.RestoreSummary(s.Context(), tenant(), in)
	s.fails("revision of before", err, core.ErrStale)
	got, _, err = s.Sessions.RestoreSummary(s.Context(), tenant(), core.SummaryRestore{SessionID: s.session.ID, Expect: got.PromptRevision})
	s.succeeds("restore none", err)
	s.equal("session without summary", []any{got.SummaryVersion, len(s.versions())}, []any{0, 0})
	_, err = s.Summaries.Get(s.Context(), tenant(), s.session.ID, 6)
	s.fails("version that does not exist", err, core.ErrNotFound)
}

// Failures of the summary model open the breaker, a summary by it closes it.
func testBreaker(s *suite) {
	log := s.turns(1)
	failed := core.NewEvent(s.session.ID, "", core.EventContextFailed, core.ContextData{Reason: "auth"})
	for i := range core.BreakerFailures {
		s.equal("open", s.work().Breaker.Until != nil, false)
		events := must[[]core.Event](s, "failed")(s.Sessions.SummaryFailed(s.Context(), tenant(), core.SummaryFailure{SessionID: s.session.ID, Reason: "auth", Events: []core.Event{failed}}))
		s.equal("events", Types(events), []core.EventType{core.EventContextFailed})
		s.equal("failures", s.work().Breaker.Failures, i+1)
	}
	until := s.work().Breaker.Until
	if until == nil || time.Until(*until) > 2*core.BreakerTime || s.work().Breaker.Reason != "auth" {
		s.Errorf("got breaker %+v, want it open", s.work().Breaker)
	}
	without := summaryOf(log[:1], core.SummaryActive)
	without.Model = ""
	s.apply(core.ContextChange{Summary: without, Failure: "timeout"})
	s.equal("failure of a change", []any{s.work().Breaker.Failures, s.work().Breaker.Reason}, []any{core.BreakerFailures + 1, "timeout"})
	s.apply(core.ContextChange{Summary: summaryOf(log, core.SummaryActive)})
	s.equal("after a summary", s.work().Breaker, core.Breaker{})
}

// One holder at a time summarizes a session.
func testSummaryLease(s *suite) {
	lease := func(holder string, d time.Duration) core.LeaseResult {
		s.Helper()
		return must[core.LeaseResult](s, "lease")(s.Sessions.LeaseSummary(s.Context(), tenant(), s.session.ID, holder, d))
	}
	s.equal("free", lease("one/a#1", time.Hour), core.GrantGiven)
	s.equal("extended", lease("one/a#1", time.Hour), core.GrantGiven)
	s.equal("of another holder", lease("two/a#1", time.Hour), core.GrantRefused)
	s.equal("busy", []bool{s.work().Busy, s.work().Since != nil}, []bool{true, true})
	s.succeeds("free another's", s.Sessions.FreeSummary(s.Context(), s.session.ID, "two/a#1"))
	s.equal("still held", lease("two/a#1", time.Hour), core.GrantRefused)
	s.succeeds("free", s.Sessions.FreeSummary(s.Context(), s.session.ID, "one/a#1"))
	s.equal("busy", s.work().Busy, false)
	s.equal("freed, for no time", lease("two/a#1", 0), core.GrantGiven)
	s.equal("taken over", lease("one/a#2", time.Hour), core.GrantTakenOver)
	s.succeeds("free by the former holder", s.Sessions.FreeSummary(s.Context(), s.session.ID, "two/a#1"))
	s.equal("still held", lease("two/a#1", time.Hour), core.GrantRefused)
}
