package nodes_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bobbin/app/agents/nodes"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// loop takes a run through llm_node and tool_node until it has ended.
func (w *world) loop(s nodes.AgentState) nodes.AgentState {
	w.t.Helper()
	for {
		s = w.mustCall(s)
		if len(s.OpenCalls()) == 0 {
			return s
		}
		s = w.mustUse(s)
	}
}

// W13: a model that calls tools for ever is made to answer in text at the last
// iteration. The tools stay in the request, only the choice changes, so that the
// prefix stays cached (R5).
func TestLastIterationForcesText(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 2, 5, 0} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			forever := llmtest.Step{Repeat: true, From: func(req llm.Request) llmtest.Step {
				if req.ToolChoice == core.ToolChoiceNone { // it calls tools even then
					return llmtest.Step{Text: []string{"I stop"}, ToolCalls: []core.ToolCall{call("c", "look")}}
				}
				return llmtest.Call(call("c", "look"))
			}}
			w := newWorld(t, 128_000, forever).with(says("look", "nothing"))
			w.profile.Agent.MaxIterations = most
			s := w.loop(w.begin("go"))
			want := most
			if most == 0 {
				want = core.DefaultMaxIterations
			}
			reqs := w.model.Requests()
			if len(reqs) != want || s.Iteration() != want {
				t.Fatalf("%d model calls, state counts %d, want %d", len(reqs), s.Iteration(), want)
			}
			for i, req := range reqs {
				compare.Equal(t, fmt.Sprintf("call %d has tool choice %q", i+1, req.ToolChoice), i == want-1, (req.ToolChoice == core.ToolChoiceNone))
				compare.Equal(t, fmt.Sprintf("call %d has other tools", i+1), reqs[0].Tools, req.Tools)
			}
			if m := w.last(); m.Content != "I stop" || len(m.ToolCalls) != 0 || w.run.Status != core.RunSucceeded {
				t.Errorf("got %q with calls %v, run %s, want the text alone", m.Content, m.ToolCalls, w.run.Status)
			}
			compare.Equal(t, "tools were started", want-1, len(w.feed.All(core.EventToolStarted)))
		})
	}
}

// W13: a model that calls a tool in its last round although it must not is asked once more, without
// tools; if it calls one even then, the run fails for the limit.
func TestLastIterationWithoutText(t *testing.T) {
	t.Parallel()
	calls := llmtest.Step{ToolCalls: []core.ToolCall{call("c", "look")}}
	for name, last := range map[string]llmtest.Step{"text": {Text: []string{"I stop"}}, "": calls} {
		w := newWorld(t, 8192, calls, calls, last).with(says("look", "nothing"))
		w.profile.Agent.MaxIterations = 2
		_, err := w.call(t.Context(), w.mustUse(w.mustCall(w.begin("go"))))
		var limit *core.Error
		if failed := errors.As(err, &limit) && limit.Code == "step_limit" && strings.Contains(limit.Message, "max_iterations"); failed == (name == "text") {
			t.Errorf("last answer %q: got error %v", name, err)
		}
		reqs := w.model.Requests()
		if len(reqs) != 3 {
			t.Fatalf("%d model calls, want the last one tried twice", len(reqs))
		}
		if req := reqs[2]; len(req.Tools) != 0 || req.ToolChoice != core.ToolChoiceAuto || !strings.Contains(fmt.Sprint(req.Messages), "[result of look]") {
			t.Errorf("got %d tools, choice %q, messages %v, want tool turns as text", len(req.Tools), req.ToolChoice, req.Messages)
		}
	}
}

// Events of a round come in the order in which things happened, and those of a
// message right after it.
func TestOrderOfEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8192,
		llmtest.Step{Text: []string{"let me look"}, ToolCalls: []core.ToolCall{call("a", "look"), call("b", "look")}}, "done",
	).with(says("look", "nothing"))
	w.loop(w.begin("go"))
	got := coretest.Types(w.feed.All())
	want := []core.EventType{
		core.EventMessageDelta, core.EventMessageCreated, core.EventToolStarted, core.EventToolStarted,
		core.EventMessageCreated, core.EventMessageCreated, core.EventToolFinished, core.EventToolFinished,
		core.EventMessageDelta, core.EventMessageCreated, core.EventRunSucceeded,
	}
	compare.Equal(t, "events", want, got)
	for i, e := range w.feed.All(core.EventToolFinished) {
		if d := coretest.Data[core.ToolFinishedData](e); d.ToolCallID != []string{"a", "b"}[i] || d.Preview != "nothing" {
			t.Errorf("finished %d: got %+v", i+1, d)
		}
	}
}

// W3, W6, B6: a session goes on from its cursor; the report that is stored with
// the answer says how much of the history the summary covers.
func TestResumingASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 128_000, "answer").turns(26, 10)
	notes := "They spoke of turns."
	through := w.Messages[24]
	w.Session.ConversationSummary, w.Session.SummaryThroughID = &notes, &through.ID
	w.Session.SummaryThroughSeq, w.Session.SummaryVersion = through.Seq, 1
	w.Session.SummaryTokens, w.Session.SummarizedCount = w.count.Text(notes), 25
	s := w.begin("go on")
	compare.Equal(t, "messages were read after", []core.MessageID{through.ID}, w.Cursors)
	compare.Equal(t, "messages: want the 27 after the summary", 27, len(s.History))
	w.mustCall(s)
	var report core.ContextReport
	must.Do(t, json.Unmarshal(w.Writes[0].Context, &report))
	// 52 messages in history (25 summarized), and the question.
	if c := report.Coverage; c.Messages != 53 || c.Summarized != 25 || c.Verbatim != 28 || c.Lost != 0 {
		t.Errorf("got coverage %+v, want 53 messages, 25 summarized", c)
	}
}

// Errors of storage end the node and keep their kind.
func TestStorageFails(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for _, op := range []string{"Sessions.Get", "GetMessagesAfter", "Write"} {
		w := newWorld(t, 8192, "answer")
		s := w.begin("hello")
		w.db.Before(func(have string) error {
			if have == op {
				return boom
			}
			return nil
		})
		var err error
		switch op {
		case "Sessions.Get":
			node := nodes.ProcessMessage{Deps: w.deps()}
			compare.Error(t, "process_message with the session that its run came with", nil, compare.ErrorOf(node.Run(t.Context(), s)))
			_, err = node.Run(t.Context(), nodes.AgentState{Run: s.Run})
		case "GetMessagesAfter":
			_, err = (&nodes.RetrieveContext{Deps: w.deps()}).Run(t.Context(), s)
		default:
			_, err = w.call(t.Context(), s)
			s.UserMessage.Seq = 0
			compare.Error(t, "save_user_message", boom, compare.ErrorOf((&nodes.SaveUserMessage{Deps: w.deps()}).Run(t.Context(), s)))
		}
		compare.Error(t, op, boom, err)
	}
}

// A client that requires a call gets one of its own tools, whatever the model calls first: it does not
// see the agent's. The last call has the client's tools alone.
func TestRequiredCallIsTheClients(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		step llmtest.Step
		want []string
	}{
		"after the agent's tool": {llmtest.Step{From: func(llm.Request) llmtest.Step { return llmtest.Call(call("f", "final")) }}, []string{"required 2", "required 2"}},
		"in the last call": {llmtest.Step{Repeat: true, From: func(req llm.Request) llmtest.Step {
			return llmtest.Call(call("c", req.Tools[0].Name))
		}}, []string{"required 2", "required 2", "required 1"}},
	} {
		w := newWorld(t, 128_000, llmtest.Call(call("c", "look")), tt.step).with(says("look", "nothing"))
		w.profile.Agent.MaxIterations = 3
		w.profile.Tools = append(w.profile.Tools, llm.ToolSpec{Name: "final"})
		s := w.begin("go")
		s.Run.Options = &core.RunOptions{ToolChoice: core.ToolChoiceRequired, Tools: []core.ClientTool{{Name: "final"}}}
		var last core.ToolCall
		for last.Name != "final" {
			s = w.mustCall(s)
			if last = s.OpenCalls()[0]; last.Name != "final" {
				s = w.mustUse(s)
			}
		}
		var got []string
		for _, req := range w.model.Requests() {
			got = append(got, fmt.Sprint(req.ToolChoice, " ", len(req.Tools)))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got the choices %q, want %q", name, got, tt.want)
		}
	}
}

// A forced tool choice holds for the first model call of a run, "none" for all; the last
// iteration is text in any case.
func TestToolChoiceOfARun(t *testing.T) {
	t.Parallel()
	for choice, want := range map[core.ToolChoice][]core.ToolChoice{
		core.ToolChoiceRequired: {core.ToolChoiceRequired, core.ToolChoiceAuto, core.ToolChoiceNone},
		"look":                  {"look", core.ToolChoiceAuto, core.ToolChoiceNone},
		core.ToolChoiceAuto:     {core.ToolChoiceAuto, core.ToolChoiceAuto, core.ToolChoiceNone},
		core.ToolChoiceNone:     {core.ToolChoiceNone},
	} {
		forever := llmtest.Step{Repeat: true, From: func(req llm.Request) llmtest.Step {
			if req.ToolChoice == core.ToolChoiceNone {
				return llmtest.Step{Text: []string{"I stop"}}
			}
			return llmtest.Call(call("c", "look"))
		}}
		w := newWorld(t, 128_000, forever).with(says("look", "nothing"))
		w.profile.Agent.MaxIterations = 3
		s := w.begin("go")
		s.Run.Options = &core.RunOptions{ToolChoice: choice}
		w.loop(s)
		var got []core.ToolChoice
		for _, req := range w.model.Requests() {
			got = append(got, req.ToolChoice)
		}
		compare.Equal(t, fmt.Sprintf("%q", choice), want, got)
	}
}

// Results that the client of the run gives begin its model calls anew; a call that nobody answered in time does not.
func TestIterationSinceResults(t *testing.T) {
	t.Parallel()
	calls := []core.ToolCall{{ID: "c1", Name: "lookup", Arguments: "{}"}}
	for status, want := range map[core.MessageStatus]int{core.MessageComplete: 1, core.MessageFailed: 2} {
		s := nodes.AgentState{Run: core.Run{Options: &core.RunOptions{Tools: []core.ClientTool{{Name: "lookup"}}}}}
		s.RunMessages = []core.Message{{Role: core.RoleUser}, {Role: core.RoleAssistant, ToolCalls: calls}, {Role: core.RoleTool, ToolCallID: "c1", Status: status}, {Role: core.RoleAssistant}}
		compare.Equal(t, string(status), want, s.Iteration())
	}
}

// A model that calls tools although there are none has as many rounds as any other.
func TestCallsOfToolsThatAreNotThere(t *testing.T) {
	t.Parallel()
	call := llmtest.Call(core.ToolCall{ID: "c1", Name: "look", Arguments: "{}"})
	call.Repeat = true
	w := newWorld(t, 8192, call)
	w.profile.Agent.MaxIterations = 2
	_, err := w.call(t.Context(), w.mustUse(w.mustCall(w.begin("hello"))))
	e, _ := errors.AsType[*core.Error](err)
	compare.True(t, e != nil && e.Code == "step_limit", "got %v after %d calls, want the limit of rounds", err, len(w.model.Requests()))
}
