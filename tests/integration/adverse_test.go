package integration_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/coretest"
)

// A turn that cannot be sent fails with a word that says why,
// and leaves a session in which the next turn works.
func TestFloorThenASmallerTurn(t *testing.T) {
	simulate(t, func(t *testing.T) {
		model := llm.Scripted("fine")
		s := newSettings(8192, model)
		tiny := llm.Scripted("never").WithInfo(llm.Info{Name: "tiny", Provider: "scripted", Window: 300, MaxOutput: 50})
		s.models["tiny"] = tiny
		agent := s.agents["assistant"]
		agent.SystemPrompt = strings.Repeat("rule ", 500)
		s.agents["assistant"] = agent
		h := newHouse(t, coretest.New(), "w", s)
		h.turns(3, 50)
		first := h.send("too much for it", "tiny")
		synctest.Wait()
		failed := h.want(first, core.RunFailed, "context_floor")
		if failed.Error == nil || !strings.Contains(failed.Error.Message, "system prompt") || len(tiny.Requests()) != 0 {
			t.Errorf("got %+v after %d calls, want the culprit named before any call", failed.Error, len(tiny.Requests()))
		}
		second := h.send("and now", "")
		synctest.Wait()
		h.want(second, core.RunSucceeded, "")
		sent := model.Requests()[0].Messages
		if got := sent[len(sent)-2].Content + ", " + sent[len(sent)-1].Content; len(sent) != 8 || got != "too much for it, and now" {
			t.Errorf("got %d messages that end with %q, want all, the unanswered one too", len(sent), got)
		}
	})
}

// An agent that was removed while its runs were queued fails them, one after the
// other; nothing hangs, and the session works when there is an agent again.
func TestAgentIsRemoved(t *testing.T) {
	simulate(t, func(t *testing.T) {
		gate := llm.NewGate()
		s := newSettings(8192, llm.Scripted(llm.Step{Text: []string{"first answer"}, Gate: gate}, "last answer"))
		h := newHouse(t, coretest.New(), "w", s)
		all := []core.Run{h.send("one", ""), h.send("two", ""), h.send("three", "")}
		<-gate.Reached()
		agent := s.agents["assistant"]
		s.change(func() { delete(s.agents, "assistant") })
		gate.Open()
		synctest.Wait()
		h.want(all[0], core.RunSucceeded, "")
		for _, run := range all[1:] {
			if got := h.want(run, core.RunFailed, "not_found"); got.Error != nil && !strings.Contains(got.Error.Message, `"assistant"`) {
				t.Errorf("got %q, want the agent named", got.Error.Message)
			}
		}
		s.change(func() { s.agents["assistant"] = agent })
		last := h.send("four", "")
		synctest.Wait()
		h.want(last, core.RunSucceeded, "")
		want := []string{"user one", "assistant first answer", "user two", "user three", "user four", "assistant last answer"}
		if diff := cmp.Diff(want, h.log()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

// A run is done by the agent that it was accepted for, which its row and the books
// name, also when the session was given another one while it waited.
func TestAgentIsChangedWhileRunsWait(t *testing.T) {
	simulate(t, func(t *testing.T) {
		gate := llm.NewGate()
		model := llm.Scripted(llm.Step{Text: []string{"one"}, Gate: gate}, "two", "three")
		s := newSettings(8192, model)
		other := s.agents["assistant"]
		other.Name, other.SystemPrompt = "other", "You are the other one."
		s.agents["other"] = other
		h := newHouse(t, coretest.New(), "w", s)
		h.send("one", "")
		h.send("two", "")
		<-gate.Reached()
		h.patch(core.SessionPatch{Agent: new("other")})
		h.send("three", "")
		gate.Open()
		synctest.Wait()
		for i, r := range model.Requests() {
			if got, want := strings.Contains(r.System[0], "the other one"), i == 2; got != want {
				t.Errorf("call %d: got the other agent's prompt %v, want %v", i+1, got, want)
			}
		}
	})
}

// A session whose model is not configured fails in words, until it has another one.
func TestModelIsUnknown(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, coretest.New(), "w", newSettings(8192, llm.Scripted("fine")))
		h.patch(core.SessionPatch{Model: new("gone")})
		first := h.send("one", "")
		synctest.Wait()
		if got := h.want(first, core.RunFailed, "not_found"); got.Error != nil && !strings.Contains(got.Error.Message, `"gone"`) {
			t.Errorf("got %q, want the model named", got.Error.Message)
		}
		h.patch(core.SessionPatch{Model: new("")})
		second := h.send("two", "")
		synctest.Wait()
		h.want(second, core.RunSucceeded, "")
	})
}

// A run that is canceled in the middle of its tools keeps what they had done; the
// next prompt has a result for every call, in the order of the calls.
func TestCancelInsideTools(t *testing.T) {
	simulate(t, func(t *testing.T) {
		started := make(chan struct{})
		model := llm.Scripted(
			llm.Call(core.ToolCall{ID: "1", Name: "hang", Arguments: "{"}, core.ToolCall{ID: "2", Name: "fire", Arguments: "{}"}),
			"fine")
		h := newHouse(t, coretest.New(), "w", newSettings(8192, model, fire{}, hang{started}))
		first := h.send("go", "")
		<-started
		synctest.Wait()
		h.cancel(first)
		h.want(first, core.RunCanceled, "")
		second := h.send("again", "")
		synctest.Wait()
		h.want(second, core.RunSucceeded, "")
		var got []string
		for _, m := range model.Requests()[1].Messages {
			got = append(got, string(m.Role)+" "+m.ToolCallID+" "+m.Content)
		}
		want := []string{
			"user  go", "assistant  ", "tool 1 error: the call was interrupted; whether it took effect is not known", "tool 2 fired", "user  again",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("prompt (-want +got):\n%s", diff)
		}
	})
}

// hang is a tool that waits for the end of its context.
type hang struct{ started chan struct{} }

func (hang) Spec() llm.ToolSpec {
	return llm.ToolSpec{Name: "hang", Description: "hangs", Parameters: []byte(`{"type":"object","properties":{}}`)}
}
func (hang) Idempotent() bool { return true }
func (h hang) Call(ctx context.Context, _ tools.Call) (string, error) {
	close(h.started)
	<-ctx.Done()
	return "", ctx.Err()
}

// A model that panics fails its run, and no other.
func TestModelPanics(t *testing.T) {
	simulate(t, func(t *testing.T) {
		s := newSettings(8192, llm.Scripted("fine"))
		s.models["broken"] = broken{}
		h := newHouse(t, coretest.New(), "w", s)
		first, second := h.send("one", "broken"), h.send("two", "")
		synctest.Wait()
		h.want(first, core.RunFailed, "internal")
		h.want(second, core.RunSucceeded, "")
	})
}

// broken is a model that panics after it began.
type broken struct{}

func (broken) Info() llm.Info { return llm.Info{Name: "broken", Provider: "scripted", Window: 8192} }
func (broken) Stream(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		yield(llm.Delta{Text: "half of"}, nil)
		panic("boom")
	}
}

// B7: a summary that no database takes does not fail the conversation.
func TestSummaryThatCannotBeStored(t *testing.T) {
	simulate(t, func(t *testing.T) {
		s := newSettings(8192, llm.Scripted("fine"))
		s.models["writer"] = llm.Scripted(llm.Step{Text: []string{summaryText + " they spoke \x00 of words \xff"}, Repeat: true})
		h := newHouse(t, coretest.New(), "w", s)
		h.turns(30, 220)
		run := h.send("go on", "")
		synctest.Wait()
		h.want(run, core.RunSucceeded, "")
		if got := h.load().ConversationSummary; got == nil || *got != core.CleanText(*got) || !strings.Contains(*got, "they spoke") {
			t.Errorf("got summary %q, want it in text that PostgreSQL takes", *got)
		}
	})
}

// In the order in which things happened, for a run that
// succeeds, one that fails in mid-sentence, and one that is queued behind them.
func TestEventsOfRuns(t *testing.T) {
	simulate(t, func(t *testing.T) {
		gate := llm.NewGate()
		model := llm.Scripted(
			llm.Step{ToolCalls: []core.ToolCall{{ID: "1", Name: "fire", Arguments: "{}"}}, Gate: gate}, "done",
			llm.Step{Text: []string{"half"}, Err: &llm.Error{Kind: llm.KindContentFilter, Provider: "scripted", Message: "no"}})
		h := newHouse(t, coretest.New(), "w", newSettings(8192, model, fire{}))
		first, second := h.send("one", ""), h.send("two", "")
		gate.Open()
		synctest.Wait()
		h.want(first, core.RunSucceeded, "")
		h.want(second, core.RunFailed, "model_content_filter")
		got := map[core.RunID][]core.EventType{}
		for _, e := range h.db.History(h.session.ID) {
			got[e.RunID] = append(got[e.RunID], e.Type)
		}
		want := map[core.RunID][]core.EventType{
			first.ID: {
				core.EventRunStarted, core.EventMessageCreated, core.EventMessageCreated, core.EventToolStarted,
				core.EventMessageCreated, core.EventToolFinished, core.EventMessageCreated, core.EventRunSucceeded,
			},
			second.ID: {
				core.EventRunQueued, core.EventRunStarted, core.EventMessageCreated, core.EventMessageDiscarded, core.EventRunFailed,
			},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// load returns the session as it is stored.
func (h *house) load() core.Session {
	h.t.Helper()
	session, err := h.db.Sessions.Get(h.t.Context(), core.Tenant{Owner: "ann"}, h.session.ID)
	if err != nil {
		h.t.Fatal(err)
	}
	return session
}

// patch changes the session.
func (h *house) patch(p core.SessionPatch) {
	h.t.Helper()
	if _, _, err := h.db.Sessions.Update(h.t.Context(), core.Tenant{Owner: "ann"}, h.session.ID, p); err != nil {
		h.t.Fatal(err)
	}
}
