package nodes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/agents/nodes"
	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// A result over its limit is stored whole, and the prompt gets head, tail and a pointer, counted as it is
// sent and the same in every later prompt, also when the limit is another one by then.
func TestLargeResultsAreStoredWhole(t *testing.T) {
	t.Parallel()
	large := "BEGIN " + strings.Repeat("0123456789 ", 20_000) + " END"
	w := newWorld(t, 128_000).with(says("read_all", large), says(core.ToolReadResult, ""))
	w.limits.Shown = 3000
	w.profile.Agent.ToolSettings = core.ToolSettings{"read_all": {MaxOutputBytes: 6000}}
	w.model.Add(llmtest.Call(call("1", "read_all")), "ok", "again")
	s := w.mustCall(w.begin("go"))
	s = w.mustUse(s)
	m := w.last()
	if m.Content != large || m.Status != core.MessageComplete || m.TokenCount > 6000 {
		t.Fatalf("got %d bytes with %d tokens, want all %d, counted as they are shown", len(m.Content), m.TokenCount, len(large))
	}
	w.mustCall(s)
	w.profile.Agent.ToolSettings, w.limits.Shown = nil, 0 // changed meanwhile
	w.mustCall(w.begin("and now?"))
	requests := w.model.Requests()
	first, second := requests[1].Messages[2].Content, requests[2].Messages[2].Content
	pointer := fmt.Sprintf(`the whole result is message %s; read_result {"message_id": "%s", "offset": 4000} reads on …]`, m.ID, m.ID)
	if !strings.HasPrefix(first, "BEGIN 0123") || !strings.HasSuffix(first, "END") || !strings.Contains(first, pointer) || len(first) > 6300 {
		t.Errorf("got %d bytes %.80q … %q in the prompt, want head, tail and %q", len(first), first, first[max(0, len(first)-80):], pointer)
	}
	compare.Equal(t, "a later prompt shows other bytes", second, first)
	if got, want := m.TokenCount, w.count.Message(core.Message{Role: core.RoleTool, Content: first, ToolCallID: m.ToolCallID, ToolName: m.ToolName}); got != want {
		t.Errorf("counted %d tokens, want the %d that are sent", got, want)
	}
}

// The settings of the agent reach the tool, and its time limit holds instead of the
// general one.
func TestToolSettingsOfTheAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen core.ToolSetting
		w := newWorld(t, 8192).with(
			toolOf("slow", func(ctx context.Context, c tools.Call) (string, error) {
				seen = c.Settings
				<-ctx.Done()
				return "", ctx.Err()
			}),
			toolOf("slower", func(ctx context.Context, _ tools.Call) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}))
		w.profile.Agent.ToolSettings = core.ToolSettings{"slow": {Timeout: core.Duration(3 * time.Second), AllowHosts: []string{"a"}}}
		s := w.asking(call("1", "slow"), call("2", "slower"))
		start := time.Now()
		w.mustUse(s)
		compare.Equal(t, "took: want the general limit of the other", time.Minute, time.Since(start))
		if got := w.results(); len(got) != 2 || !strings.Contains(got[0], "within 3s") || !strings.Contains(got[1], "within 1m0s") {
			t.Errorf("got %q", got)
		}
		compare.Equal(t, "the tool: string(raw)", `{"timeout":"3s","allow_hosts":["a"]}`, string(must.Get(json.Marshal(seen))(t)))
	})
}

// echo is a tool that answers with its arguments.
func echo(name string) *tools.Custom {
	return toolOf(name, func(_ context.Context, c tools.Call) (string, error) { return "got " + c.Arguments, nil })
}

// A run that goes on after a crash calls its tools with the arguments that the model
// wrote, also when the texts of that message were left in storage.
func TestOpenCallsAreLoadedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8192, "done").with(echo("note"))
	s := w.begin("hello")
	w.append(core.Message{Role: core.RoleAssistant, RunID: s.Run.ID, ToolCalls: []core.ToolCall{
		{ID: "c1", Name: "note", Arguments: `{"n":1}`}, {ID: "c2", Name: "note", Arguments: `{"n":2}`},
	}})
	w.append(core.Message{Role: core.RoleTool, RunID: s.Run.ID, ToolCallID: "c1", Content: "noted", Status: core.MessageComplete})
	w.WithTexts = 1
	w.loop(w.resume(s.Run))
	compare.Equal(t, "results", []string{"c1 complete noted", `c2 complete got {"n":2}`}, w.results())

	w.append(core.Message{Role: core.RoleAssistant, RunID: s.Run.ID, ToolCalls: []core.ToolCall{{ID: "c3", Name: "note", Arguments: `{"n":3}`}, {ID: "c4"}}})
	w.append(core.Message{Role: core.RoleTool, RunID: s.Run.ID, ToolCallID: "c4"})
	away := errors.New("the database is away")
	w.db.Before(func(op string) error {
		if op == "GetMessages" {
			return away
		}
		return nil
	})
	_, err := (&nodes.RetrieveContext{Deps: w.deps()}).Run(t.Context(), nodes.AgentState{
		Turn: compaction.Turn{Session: w.Session, Profile: w.profile}, Run: s.Run, UserMessage: s.UserMessage,
	})
	compare.Error(t, "err: want that the arguments cannot be loaded", away, err)
}
