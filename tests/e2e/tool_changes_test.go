package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// toolTalk is a session whose agent's tools change, with a strict provider.
type toolTalk struct {
	*apptest.Bobbin

	t     *testing.T
	model strictProvider
	id    core.SessionID
}

// newToolTalk starts a Bobbin whose agent "helper" has a calculator and the tools of an MCP server.
func newToolTalk(t *testing.T, start func(*testing.T, *provider.Strict) strictProvider, strict provider.Strict) *toolTalk {
	t.Helper()
	strict.Account, strict.Secret, strict.AlwaysThinks = "account", "secret", true
	k := &toolTalk{t: t, model: start(t, &strict)}
	m := k.model.model
	m.Name, m.ContextWindow, m.MaxOutputTokens = "house", 200_000, 8_192
	k.Bobbin = apptest.New(t, dbtest.MigratedSQLiteURL(t), mcpTool(t, "local", ""), func(cfg *config.Config) {
		cfg.Models = append(cfg.Models, m)
		cfg.DefaultLLM = "house"
	}, apptest.WithAgent("helper", toolAgent("calculator")))
	k.id = apptest.NewSession(t, k.Client, ops.NewSession{Agent: "helper"})
	return k
}

// toolAgent returns the file of an agent with the tools and those of the MCP server.
func toolAgent(tools string) string {
	return "name: helper\nsystem_prompt: You help.\ntools: [local, " + tools + "]\ntool_settings: {local__new1: {approval: never}}\n"
}

// changeAgent changes the tools of the agent's file.
func (k *toolTalk) changeAgent(tools string) { changeAgent(k.t, k.Config, "helper", toolAgent(tools)) }

// callTool sends a message that names a tool, and checks that the model calls it.
func (k *toolTalk) callTool(name string) {
	k.t.Helper()
	got := apptest.SendMessage(k.t, k.Client, core.SendMessage{SessionID: k.id, Content: "use the tool " + name})
	if len(got.Messages) != 4 || got.Messages[1].ToolCalls[0].Name != name || strings.Contains(got.Messages[2].Content, "there is no tool") {
		k.t.Errorf("got the messages %+v, want a call of %s", got.Messages, name)
	}
}

// wantKept checks that the provider verified all thoughts that came back, and that the next prompt has all.
func (k *toolTalk) wantKept() {
	k.t.Helper()
	answers := 0
	for _, m := range apptest.ListMessages(k.t, k.Client, k.id) {
		if m.Role == core.RoleAssistant {
			answers++
		}
	}
	if got := k.model.thoughts(); got.Dropped > 0 || got.Refused > 0 || got.Verified == 0 {
		k.t.Errorf("got %+v, want no thought refused or dropped", got)
	}
	if got := contextOf(k.t, k.Client, k.id).Thoughts; got == nil || got.Kept != answers || len(got.Dropped) > 0 {
		k.t.Errorf("got %+v, want all of %d thoughts kept", got, answers)
	}
}

// wantAdded checks that the prompt shown begins with the tools that it had, and has another tool in a message.
func (k *toolTalk) wantAdded(name string) {
	k.t.Helper()
	prompt := must.Get(client.Call(k.t.Context(), k, ops.GetPrompt, ops.InSession{SessionID: k.id}))(k.t)
	isNamed := func(tool core.PromptTool) bool { return tool.Name == name }
	inMessage := slices.ContainsFunc(prompt.Messages, func(m core.PromptMessage) bool { return slices.ContainsFunc(m.AddedTools, isNamed) })
	compare.True(k.t, !slices.ContainsFunc(prompt.Tools, isNamed) && inMessage, "the prompt has the tool %s in a message: %v, want it there alone", name, inMessage)
}

// awaitTool waits until the agent has a tool, or no longer.
func (k *toolTalk) awaitTool(name string, want bool) {
	k.t.Helper()
	process.Await(k.t, fmt.Sprintf("the tools have %s: %v", name, want), func() bool {
		return slices.Contains(must.Get(client.Call(k.t.Context(), k, ops.GetAgent, ops.InAgent{Name: "helper"}))(k.t).Tools, name) == want
	})
}

// The agent's file gets a tool, its MCP server another, a run brings one of its client; a restart takes
// some of them, and the file loses and gets its tool again. No thought is refused or left out, and the model
// may call each tool while it is there.
func TestThoughtsStayValidBehindToolChanges(t *testing.T) {
	t.Parallel()
	for name, start := range strictProviders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newToolTalk(t, start, provider.Strict{})
			say := func() {
				apptest.SendMessage(t, k.Client, core.SendMessage{SessionID: k.id, Content: "go on"})
			}
			say()
			k.changeAgent("calculator, current_time")
			k.callTool("current_time")
			k.wantAdded("current_time")
			k.callTool("local__change")
			k.awaitTool("local__new1", true)
			k.callTool("local__new1")
			asked := must.Get(apptest.SendAndWait(t.Context(), k, core.SendMessage{SessionID: k.id, Content: "use the tool lookup", Options: &core.RunOptions{Tools: []core.ClientTool{lookup}}}))(t)
			run := must.Get(client.Call(t.Context(), k, ops.GetRun, ops.InRun{RunID: asked.Run.ID}))(t)
			decide(t, k.Bobbin, run, ops.Decision{Result: new("in London")})
			wantEnd(t, k.Bobbin, run.ID, core.RunSucceeded, "lookup: in London")
			k.wantKept()
			for _, tools := range []string{`[]`, `[{"type":"function","function":{"name":"other"}}]`} { // instead of lookup, inside the run
				asked = must.Get(apptest.SendAndWait(t.Context(), k, core.SendMessage{SessionID: k.id, Content: "use the tool lookup", Options: &core.RunOptions{Tools: []core.ClientTool{lookup}}}))(t)
				call := strings.ReplaceAll(string(asked.Run.ID), "-", "") + "_" + must.Get(client.Call(t.Context(), k, ops.GetRun, ops.InRun{RunID: asked.Run.ID}))(t).Approvals[0].ToolCallID
				a := postForeign(t, k.Bobbin, "chat/completions", `{"model":"helper","messages":[{"role":"user","content":"go on"},{"role":"tool","tool_call_id":"call_`+call+`","content":"in London"}],"tools":`+tools+`}`)
				compare.Equal(t, "tools "+tools+": "+a.text, http.StatusOK, a.status)
				k.wantKept()
			}
			say()
			k.Restart()
			k.awaitTool("local__write", true)
			say()
			k.changeAgent("calculator")
			say()
			k.changeAgent("current_time, calculator")
			k.callTool("current_time")
			k.wantKept()
		})
	}
}

// A provider that knows no such messages refuses one once: the same run goes on without, the thoughts so far are
// lost and announced, and neither another session nor the next process sends any.
func TestToolChangesThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, start := range strictProviders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newToolTalk(t, start, provider.Strict{RefusesToolChanges: true})
			for range 2 {
				apptest.SendMessage(t, k.Client, core.SendMessage{SessionID: k.id, Content: "go on"})
				k.changeAgent("calculator, current_time")
				k.callTool("current_time")
				report := contextOf(t, k.Client, k.id).Thoughts
				if report == nil || report.Kept != 2 || len(report.Dropped) != 1 || report.Dropped[0].Reason != "changed" || report.Dropped[0].Count != 1 {
					t.Errorf("got %+v, want the first thought lost and announced", report)
				}
				k.changeAgent("calculator")
				k.Restart()
				k.id = apptest.NewSession(t, k.Client, ops.NewSession{Agent: "helper"})
			}
			if got := k.model.thoughts(); got.Refused != 1 || got.Dropped != 0 {
				t.Errorf("got %+v, want one refusal and no thought dropped", got)
			}
		})
	}
}

// A model whose name tells nothing refuses thoughts after a summary changed the prompt: once. From
// then on its contract is known, in all sessions and after a restart.
func TestThoughtsAreRefusedOnce(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Calls: callsInLoops, Strict: &provider.Strict{Account: "account", Secret: "secret", AlwaysThinks: true}})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), func(c *config.Config) {
		c.Models = append(c.Models, config.Model{
			Name: "house", Provider: "anthropic", Model: "claude-latest", BaseURL: p.URL, ThinkingBudget: 2_048,
			ContextWindow: 8_192, MaxOutputTokens: 4_096,
		})
		c.DefaultLLM = "house"
	})
	talk := func() core.SessionID {
		id := apptest.NewSession(t, h.Client, ops.NewSession{Timezone: "Europe/Vienna"})
		w := apptest.NewWriter(5)
		for n := 0; n < 20 || session(t, h.Client, id).SummaryCount == 0; n++ {
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: w.Question(2 * n)})
		}
		return id
	}
	id := talk()
	if got := p.Thoughts(); got.Refused != 1 || got.Dropped > 0 {
		t.Errorf("got %+v in the first session, want one refusal", got)
	}
	if report, err := client.Call(t.Context(), h, ops.GetContext, ops.InSession{SessionID: id}); err != nil || report.Thoughts == nil || report.Thoughts.Contract != "refuses" {
		t.Errorf("got the thoughts %+v in /context, %v", report.Thoughts, err)
	}
	h.Restart()
	before := p.Thoughts().Verified
	talk()
	if got := p.Thoughts(); got.Refused != 1 || got.Dropped > 0 || got.Verified == before {
		t.Errorf("got %+v after a restart and another session, want no other refusal", got)
	}
}
