package repositories_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

func TestWriteStoresAStep(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		session := s.session(t).ID
		accepted := s.accept(t, ask(session, "2+2?"))
		run := accepted.Run

		// Raw arguments keep their bytes: order, spaces, numbers.
		call := core.ToolCall{ID: "call-1", Name: "calculator", Arguments: `{ "b":1e2,  "a": "\u00e9", "z":12345678901234567890 }`, Signature: "sig"}
		asking := answer("")
		asking.ToolCalls, asking.FinishReason, asking.Model = []core.ToolCall{call}, core.FinishToolCalls, "gpt-4o"
		asking.Parts = []core.Part{{Type: "reasoning", Text: "hm <b>", Signature: "s"}}
		asking.Metadata = json.RawMessage(`{"a": 1}`)
		started := core.NewEvent(session, "", core.EventToolStarted, core.ToolStartedData{ToolCallID: call.ID, Name: call.Name, Arguments: call.Arguments})
		got := s.write(t, core.RunWrite{
			RunID: run.ID, SessionID: session, Attempt: 1, Messages: []core.Message{asking}, Events: []core.Event{started},
			ModelCalls: []core.ModelCall{{Purpose: core.PurposeAnswer, Model: "gpt-4o", Usage: core.Usage{InputTokens: 10, CacheReadTokens: 3}, Duration: time.Second}},
			Usage:      core.Usage{InputTokens: 10, CacheReadTokens: 3},
			State:      json.RawMessage(`{"model":"gpt-4o"}`), Context: json.RawMessage(`{"used":1}`),
		})
		if diff := cmp.Diff([]core.EventType{core.EventMessageCreated, core.EventToolStarted}, types(got.Events)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if got.Run.Status != core.RunRunning || got.Run.Usage.InputTokens != 10 || string(got.Run.Context) == "" || string(got.Run.State) == "" {
			t.Errorf("run: got %+v, want running with usage, state and context", got.Run)
		}
		log := s.log(t, session)
		if m := log[1]; m.Seq != 2 || m.ParentID != accepted.Message.ID || m.RunID != run.ID || m.Owner != "ann" || !m.OnPath {
			t.Errorf("message: got %+v, want seq 2 below the question", m)
		}
		if diff := cmp.Diff([]core.ToolCall{call}, log[1].ToolCalls); diff != "" {
			t.Errorf("tool calls (-written +stored):\n%s", diff)
		}
		if diff := cmp.Diff(got.Messages, log[1:], sameJSON()); diff != "" {
			t.Errorf("message (-returned +stored):\n%s", diff)
		}
		usage, err := s.sessionUsage(t.Context(), ann(), session)
		if want := (core.Usage{InputTokens: 10, CacheReadTokens: 3}); err != nil || usage != want {
			t.Errorf("session usage: got %+v, %v, want %+v", usage, err, want)
		}
		all := s.allEvents(t, session)
		gapless(t, "event", all, func(e core.Event) int64 { return e.Seq })
		if diff := cmp.Diff(got.Events, all[2:], asRead()); diff != "" {
			t.Errorf("events (-returned +stored):\n%s", diff)
		}
	})
}

// sameJSON compares JSON columns by what they say: jsonb orders keys anew.
func sameJSON() cmp.Option {
	return cmp.Comparer(func(a, b json.RawMessage) bool {
		var x, y any
		if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
			return len(a) == len(b)
		}
		return cmp.Equal(x, y)
	})
}

// A write of an older attempt is refused; nothing is stored.
func TestWriteIsFenced(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		session := s.session(t).ID
		run := s.accept(t, ask(session, "hello")).Run
		s.expire(t)
		taken, err := s.takeOver(t.Context(), "worker-2", true, 10)
		if err != nil || len(taken) != 1 || taken[0].Attempt != 2 {
			t.Fatalf("take over: got %+v, %v, want the run with attempt 2", taken, err)
		}
		ended := s.accept(t, ask(s.session(t).ID, "other")).Run
		s.finish(t, ended, "done")
		queued := ask(session, "queued")
		queued.Worker = ""

		tests := []struct {
			name    string
			run     core.RunID
			session core.SessionID
			attempt int
		}{
			{"former attempt", run.ID, session, 1},
			{"future attempt", run.ID, session, 3},
			{"ended run", ended.ID, ended.SessionID, 1},
			{"queued run", s.accept(t, queued).Run.ID, session, 0},
			{"run of another session", run.ID, ended.SessionID, 2},
			{"unknown run", core.NewID[core.RunID](), session, 1},
			{"unknown session", run.ID, core.NewID[core.SessionID](), 2},
			{"no id at all", "nonsense", session, 1},
		}
		tables := "SELECT (SELECT COUNT(*) FROM messages) + (SELECT COUNT(*) FROM session_events) + (SELECT COUNT(*) FROM model_calls) + (SELECT COUNT(*) FROM tool_executions)"
		before := s.count(t, tables)
		sessions := s.sessionOf(t, session)
		for _, tt := range tests {
			_, err := s.runs.Write(t.Context(), core.RunWrite{
				RunID: tt.run, SessionID: tt.session, Attempt: tt.attempt, Messages: []core.Message{answer("late")},
				ModelCalls: []core.ModelCall{{Purpose: core.PurposeAnswer, Model: "m"}},
				Events:     []core.Event{core.NewEvent(session, "", core.EventContextWarning, core.ContextData{})},
				End:        &core.RunEnd{Status: core.RunSucceeded},
			})
			wantError(t, tt.name+": write", err, core.ErrStale)
			if tt.name == "run of another session" || tt.name == "unknown session" {
				continue // the others do not name a session
			}
			err = s.runs.SavePartial(t.Context(), tt.run, tt.attempt, "late")
			wantError(t, tt.name+": save partial", err, core.ErrStale)
			err = s.runs.StartTools(t.Context(), tt.run, tt.attempt, []core.ToolExecution{{CallID: "c", Tool: "x"}})
			wantError(t, tt.name+": start tools", err, core.ErrStale)
		}
		if got := s.count(t, tables); got != before {
			t.Errorf("rows: got %d, want still %d", got, before)
		}
		if diff := cmp.Diff(sessions, s.sessionOf(t, session)); diff != "" {
			t.Errorf("session (-before +after):\n%s", diff)
		}
		s.finish(t, taken[0], "the new attempt may")
	})
}

func (s *store) sessionOf(t *testing.T, id core.SessionID) core.Session {
	t.Helper()
	session, err := s.sessions.Get(t.Context(), ann(), id)
	if err != nil {
		t.Fatalf("get session: %v", err)
	}
	return session
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		session := s.session(t).ID
		run := s.accept(t, ask(session, "hello")).Run
		elsewhere := s.accept(t, ask(s.session(t).ID, "hello")).Message
		nul, half, broken := answer("a\x00b"), answer("x"), answer("\xff")
		half.Metadata = json.RawMessage(`{"a":"\ud800"}`)
		escaped := answer("x")
		escaped.Metadata = json.RawMessage(`{"a":"\u0000"}`)
		badID := answer("x")
		badID.ID = "m-1"
		tests := []struct {
			name string
			w    core.RunWrite
			want error
		}{
			{"large state", core.RunWrite{State: json.RawMessage(`"` + strings.Repeat("x", core.MaxRunState) + `"`)}, core.ErrInvalid},
			{"state that is not JSON", core.RunWrite{State: json.RawMessage(`{`)}, core.ErrInvalid},
			{"end that is none", core.RunWrite{End: &core.RunEnd{Status: core.RunRunning}}, core.ErrInvalid},
			{"NUL", core.RunWrite{Messages: []core.Message{nul}}, core.ErrInvalid},
			{"NUL in JSON", core.RunWrite{Messages: []core.Message{escaped}}, core.ErrInvalid},
			{"half a surrogate pair", core.RunWrite{Messages: []core.Message{half}}, core.ErrInvalid},
			{"broken UTF-8", core.RunWrite{Messages: []core.Message{broken}}, core.ErrInvalid},
			{"id that is none", core.RunWrite{Messages: []core.Message{badID}}, core.ErrInvalid},
			{"NUL in the error", core.RunWrite{End: &core.RunEnd{Status: core.RunFailed, Error: &core.RunError{Message: "\x00"}}}, core.ErrInvalid},
			{"NUL in a model call", core.RunWrite{ModelCalls: []core.ModelCall{{Error: "\x00"}}}, core.ErrInvalid},
			{"id of another session's message", core.RunWrite{Messages: []core.Message{elsewhere}}, core.ErrConflict},
		}
		before := s.sessionOf(t, session)
		for _, tt := range tests {
			tt.w.RunID, tt.w.SessionID, tt.w.Attempt = run.ID, session, 1
			_, err := s.runs.Write(t.Context(), tt.w)
			wantError(t, tt.name, err, tt.want)
		}
		wantError(t, "partial with NUL", s.runs.SavePartial(t.Context(), run.ID, 1, "\x00"), core.ErrInvalid)
		if diff := cmp.Diff(before, s.sessionOf(t, session)); diff != "" {
			t.Errorf("session (-before +after):\n%s", diff)
		}
		// A character outside the basic plane, escaped, is whole.
		pair := answer("x")
		pair.Metadata = json.RawMessage(`{"a":"\ud83d\ude00 \\u0000"}`)
		s.write(t, core.RunWrite{RunID: run.ID, SessionID: session, Attempt: 1, Messages: []core.Message{pair}})
	})
}

func TestToolExecutions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		session := s.session(t).ID
		run := s.accept(t, ask(session, "go")).Run
		start := func(run core.Run, calls ...string) {
			var list []core.ToolExecution
			for _, c := range calls {
				list = append(list, core.ToolExecution{CallID: c, Tool: "send_mail"})
			}
			if err := s.runs.StartTools(t.Context(), run.ID, run.Attempt, list); err != nil {
				t.Fatalf("start tools: %v", err)
			}
		}
		start(run)
		start(run, "a", "b", "a")
		result := core.Message{Role: core.RoleTool, ToolCallID: "a", Content: "sent", Source: core.SourceAPI}
		s.write(t, core.RunWrite{RunID: run.ID, SessionID: session, Attempt: 1, Messages: []core.Message{result}})

		first := s.executions(t, run.ID)["a"].FinishedAt
		again := result
		again.ID = core.NewID[core.MessageID]()
		s.write(t, core.RunWrite{RunID: run.ID, SessionID: session, Attempt: 1, Messages: []core.Message{again}})
		if e := s.executions(t, run.ID)["a"]; first == nil || !e.FinishedAt.Equal(*first) {
			t.Errorf("finished: got %v, want the first time, %v", e.FinishedAt, first)
		}

		// A crash here: b has a row and no result, "interrupted, outcome unknown".
		s.expire(t)
		taken, err := s.takeOver(t.Context(), "worker-2", true, 1)
		if err != nil || len(taken) != 1 {
			t.Fatalf("take over: got %v, %v, want the run", taken, err)
		}
		got := s.executions(t, run.ID)
		if len(got) != 2 || got["a"].FinishedAt == nil || got["b"].FinishedAt != nil || got["b"].Attempt != 1 {
			t.Errorf("after the crash: got %+v, want a finished and b open", got)
		}
		if e := got["b"]; e.Owner != "ann" || e.SessionID != session || e.Tool != "send_mail" || e.StartedAt.IsZero() {
			t.Errorf("execution: got %+v, want owner, session, tool and start", e)
		}
		start(taken[0], "b")
		if e := s.executions(t, run.ID)["b"]; e.Attempt != 2 || e.FinishedAt != nil {
			t.Errorf("started again: got %+v, want attempt 2, open", e)
		}
		none, err := s.runs.ToolExecutions(t.Context(), core.NewID[core.RunID]())
		if err != nil || len(none) != 0 {
			t.Errorf("unknown run: got %v, %v, want none", none, err)
		}
	})
}

func (s *store) executions(t *testing.T, run core.RunID) map[string]core.ToolExecution {
	t.Helper()
	list, err := s.runs.ToolExecutions(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	byCall := map[string]core.ToolExecution{}
	for _, e := range list {
		byCall[e.CallID] = e
	}
	return byCall
}

// The next attempt finds the id of a message that took another one's place, though
// nothing of it was saved.
func TestWriteTellsTheNextMessage(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		run := s.accept(t, ask(s.session(t).ID, "hello")).Run
		next := core.NewID[core.MessageID]()
		_, err := s.runs.Write(t.Context(), core.RunWrite{RunID: run.ID, SessionID: run.SessionID, Attempt: 1, Next: next})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.runs.Get(t.Context(), ann(), run.ID)
		if want := (core.Draft{Attempt: 1, MessageID: next}); err != nil || core.DecodeDraft(got.Partial) != want {
			t.Errorf("got draft %q, %v, want %+v", got.Partial, err, want)
		}
	})
}
