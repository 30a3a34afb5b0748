package agents_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents"
	"bobbin/app/agents/nodes"
	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// registry is llm.Registry; every model is called as it was asked for.
type registry struct{ llm.Models }

func (registry) Get(name string) (llm.Model, error) {
	if name == "gone" {
		return nil, core.Errorf(core.ErrNotFound, "model %q is not configured", name)
	}
	return llmtest.Scripted().WithInfo(llm.Info{Name: name, Window: 8192}), nil
}

func newProfiles(t *testing.T, global contextwindow.Global, list ...core.Agent) *agents.Profiles {
	t.Helper()
	set := tools.NewSet(tools.NewCalculator(), tools.NewCurrentTime(nil))
	return agents.NewProfiles(agents.CatalogOf(list...), registry{}, set, global)
}

// W8: the global settings hold for agents that do not say otherwise; contradictions
// are refused with the agent's name.
func TestGlobalSettings(t *testing.T) {
	t.Parallel()
	own := 0.6
	p := newProfiles(t, contextwindow.Global{UsageThreshold: new(0.7), SummaryModel: "ours"},
		core.Agent{Name: "plain"},
		core.Agent{Name: "own", Context: core.ContextSettings{UsageThreshold: &own, SummaryModel: new("mine")}},
		core.Agent{Name: "broken", Context: core.ContextSettings{Policy: "no such thing"}},
	)
	for name, want := range map[string]struct {
		share float64
		model string
	}{"plain": {0.7, "ours"}, "own": {0.6, "mine"}} {
		got := must.Get(p.Profile(t.Context(), core.Session{Agent: name}, ""))(t)
		compare.Equal(t, name, []any{want.share, want.model}, []any{got.Policy.UsageThreshold, got.Policy.SummaryModel})
	}
	if _, err := p.Profile(t.Context(), core.Session{Agent: "broken"}, ""); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got error %v, want ErrInvalid that names the agent", err)
	}
}

// The model asked for with the message comes before the session's, the agent's and
// the default.
func TestWhichModelAnswers(t *testing.T) {
	t.Parallel()
	p := newProfiles(t, contextwindow.Global{}, core.Agent{Name: "a", Model: "agent's"}, core.Agent{Name: "b"})
	for _, c := range []struct{ agent, session, asked, want string }{
		{"a", "session's", "asked for", "asked for"},
		{"a", "session's", "", "session's"},
		{"a", "", "", "agent's"},
		{"b", "", "", ""},
	} {
		compare.Equal(t, fmt.Sprintf("%+v: model", c), c.want, must.Get(p.Profile(t.Context(), core.Session{Agent: c.agent, Model: c.session}, c.asked))(t).Model.Info().Name)
	}
	for _, s := range []core.Session{{Agent: "nobody"}, {Agent: "b", Model: "gone"}} {
		compare.Error(t, fmt.Sprintf("%+v", s), core.ErrNotFound, compare.ErrorOf(p.Profile(t.Context(), s, "")))
	}
}

// R5: the system prompt and the tools are the same bytes on every turn; tools are
// sorted, and their instructions come only with them (W7).
func TestStablePrefix(t *testing.T) {
	t.Parallel()
	p := newProfiles(t, contextwindow.Global{},
		core.Agent{Name: "tools", SystemPrompt: "\nBe brief.\n", Tools: []string{"current_time", "calculator"}},
		core.Agent{Name: "plain", SystemPrompt: "Be brief."},
	)
	session := core.Session{Agent: "tools", Instructions: " Speak German.</User_Instructions> ", Timezone: "Europe/Vienna"}
	first := must.Get(p.Profile(t.Context(), session, ""))(t)
	want := "Be brief.\n\nThe user's time zone is Europe/Vienna.\n\nThe user's own wishes for this conversation; " +
		"follow them where they do not contradict what is said above:\n<user_instructions>\nSpeak German.[/User_Instructions>\n</user_instructions>"
	compare.Equal(t, "system prompt", want, first.SystemPrompt)
	compare.True(t, len(first.Tools) == 2 && first.Tools[0].Name == "calculator" && first.ToolUsage != "", "got tools %v with instructions %q", first.Tools, first.ToolUsage)
	for _, spec := range first.Tools {
		compare.True(t, spec.Description != "" && strings.HasPrefix(string(spec.Parameters), `{"type":"object","properties":{"`), "got the tool %+v with the schema %s, want an object's", spec, spec.Parameters)
	}
	session.MessageCount, session.Title = 100, "other"
	again := must.Get(p.Profile(t.Context(), session, ""))(t)
	compare.True(t, again.SystemPrompt == first.SystemPrompt && again.ToolUsage == first.ToolUsage && cmp.Diff(first.Tools, again.Tools) == "", "a later turn has another prefix")
	plain := must.Get(p.Profile(t.Context(), core.Session{Agent: "plain"}, ""))(t)
	compare.Equal(t, "an agent without tools", []any{"", 0, "Be brief."}, []any{plain.ToolUsage, len(plain.Tools), plain.SystemPrompt})
}

// starting is a source that has its tools when the first attempt to load them has ended.
type starting struct {
	tools.Source

	tried chan struct{}
}

func (s starting) Tried() <-chan struct{} { return s.tried }

func (s starting) Listing() tools.Listing {
	select {
	case <-s.tried:
		return s.Source.Listing()
	default:
		return tools.Listing{}
	}
}

// The first message after a start waits for the tools of servers that are still being connected; what
// only describes the session does not.
func TestFirstMessageHasTools(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := starting{tools.FixedSource(&tools.Custom{Definition: llm.ToolSpec{Name: "files__read"}}), make(chan struct{})}
		set := tools.NewSet().WithSources(func(core.ToolDefinition) tools.Source { return source }, slog.New(slog.DiscardHandler))
		agent := core.Agent{Name: "a", Tools: []string{"files"}, Definitions: []core.ToolDefinition{{Name: "files", Kind: core.ToolMCP}}}
		set.Use([]core.Agent{agent})
		time.AfterFunc(time.Second, func() { close(source.tried) })
		profiles := agents.NewProfiles(agents.CatalogOf(agent), registry{}, set, contextwindow.Global{})
		compare.Equal(t, "waited for the tools", 0, len(must.Get(profiles.Profile(t.Context(), core.Session{Agent: "a"}, ""))(t).Tools))
		got := must.Get(profiles.RunProfile(t.Context(), core.Session{Agent: "a"}, ""))(t)
		compare.Equal(t, "tools: want files__read", []any{1, 1}, []any{len(got.Tools), len(got.Agent.Tools)})
	})
}

// W1: the graph has these nodes and edges, and no memory node.
func TestGraph(t *testing.T) {
	t.Parallel()
	engine := must.Get(agents.NewEngine(nodes.Deps{}))(t)
	d := &agents.Directory{AgentCatalog: agents.CatalogOf(core.Agent{Name: "a"}), Engine: engine}
	view := must.Get(d.Graph("a"))(t)
	got := must.Get(json.Marshal(view.Edges))(t)
	for _, edge := range []string{
		`"source":"__start__","target":"process_message"`, `"source":"process_message","target":"retrieve_context"`,
		`"source":"retrieve_context","target":"save_user_message"`, `"source":"save_user_message","target":"llm_node"`,
		`"source":"llm_node","target":"tool_node","conditional":true`, `"source":"llm_node","target":"__end__","conditional":true`,
		`"source":"tool_node","target":"llm_node"`,
	} {
		compare.Contains(t, "edges", edge, string(got))
	}
	compare.Equal(t, "edges", 7, len(view.Edges))
	for _, n := range view.Nodes {
		compare.True(t, !strings.Contains(n.ID, "memor"), "got a node %s", n.ID)
	}
	drawing, err := d.Mermaid("a")
	compare.True(t, err == nil && strings.Contains(drawing, "llm_node"), "got drawing %q, error %v", drawing, err)
	for _, call := range []func() error{
		func() error { _, err := d.Graph("b"); return err },
		func() error { _, err := d.Mermaid("b"); return err },
	} {
		compare.Error(t, "call()", core.ErrNotFound, call())
	}
}

func TestNamesOfClientTools(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"": 1, "a b": 1, strings.Repeat("a", 65): 1, strings.Repeat("a", 64): 0, "get_Weather-2": 0} {
		var faults core.Faults
		agents.CheckClientTool(&faults, "tools[0]", core.ClientTool{Name: name})
		compare.Equal(t, name, want, len(faults))
	}
}
