package agents_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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

// known is what files may refer to in the tests: as in app.go.
func known() agents.KnownParts {
	return agents.KnownParts{Tools: []string{"calculator", "current_time", "read_result", "search_history"}}
}

// load loads the files, of which each is a name and a text; faults call the folder
// "agents".
func load(t *testing.T, files map[string]string) (*agents.Catalog, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	c, err := agents.LoadCatalog(dir, known())
	if err != nil {
		err = errors.New(strings.ReplaceAll(err.Error(), dir, "agents"))
	}
	return c, err
}

func names(c *agents.Catalog) []string {
	var list []string
	for _, agent := range c.List() {
		list = append(list, agent.Name)
	}
	return list
}

// The built-in agents are there without any file or folder.
func TestLoadBuiltin(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]string{"empty folder": t.TempDir(), "no folder": filepath.Join(t.TempDir(), "none")} {
		c, err := agents.LoadCatalog(dir, known())
		must.True(t, err == nil, "%s: Load: %v", name, err)
		compare.Equal(t, fmt.Sprintf("%s: agents", name), []string{"assistant", "quick", "researcher"}, names(c))
		for _, agent := range c.List() {
			compare.True(t, agent.SystemPrompt != "" && agent.Description != "" && len(agent.Tools) >= 2 && len(agent.Version) == 12, "%s: agent %s is not complete: %+v", name, agent.Name, agent)
		}
	}
}

// B9: the samples quick (15 messages / 32,000 tokens) and researcher (50 /
// 180,000). B2: they behave differently in one process.
func TestLoadSamples(t *testing.T) {
	t.Parallel()
	c := must.Get(load(t, nil))(t)
	for name, want := range map[string][2]int{"quick": {15, 32_000}, "researcher": {50, 180_000}} {
		agent, err := c.Get(name)
		must.True(t, err == nil, "Get(%s): %v", name, err)
		policy, err := contextwindow.Resolve(contextwindow.Global{}, agent.Context)
		must.True(t, err == nil, "Resolve(%s): %v", name, err)
		got := [2]int{policy.MaxMessages, policy.MaxTokens}
		compare.Equal(t, name+": policy", []any{"budget", want}, []any{policy.Name, got})
	}
}

func ptr[T any](v T) *T { return &v }

// A file replaces the built-in agent of its name; what is no *.yaml is no agent.
func TestLoadOverrides(t *testing.T) {
	t.Parallel()
	c := must.Get(load(t, map[string]string{
		"mine.yaml": "name: assistant\nsystem_prompt: Mine.\n", "zoe.yaml": "name: zoe",
		"README.md": "# agents", ".draft.yaml": "nam: x", "old/x.yaml": "nam: x",
	}))(t)
	compare.Equal(t, "agents", []string{"assistant", "quick", "researcher", "zoe"}, names(c))
	compare.Equal(t, "assistant: got.SystemPrompt: want the file's", "Mine.", must.Get(c.Get("assistant"))(t).SystemPrompt)
}

// The version is the same for the same agent however it is written, and another
// for every change.
func TestVersion(t *testing.T) {
	t.Parallel()
	version := func(text string) string {
		c := must.Get(load(t, map[string]string{"a.yaml": text}))(t)
		agent := must.Get(c.Get("a"))(t)
		return agent.Version
	}
	first := version("name: a\ntools: [calculator]\ncontext: {policy: budget}\n")
	compare.Equal(t, "the same agent written otherwise: version", first, version("# same\ncontext:\n  policy: \"budget\"\ntools:\n  - calculator\nname: a\n"))
	seen := map[string]bool{first: true}
	for _, other := range []string{"name: a\n", "name: a\ntools: [calculator]\ncontext: {policy: sliding}\n", "name: a\ntools: [calculator]\ncontext: {policy: budget, land_at: 0.5}\n", "name: a\nsystem_prompt: x\n"} {
		got := version(other)
		compare.True(t, !seen[got] && len(got) == 12, "version of %q: got %s, want 12 digits that no other agent has", other, got)
		seen[got] = true
	}
}

// The faults of one file name it where it is.
func TestLoadFile(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	must.Do(t, os.WriteFile(bad, []byte("name: bad\ntools: [hammer]\n"), 0o600))
	if _, err := agents.LoadAgentFile(bad, known()); err == nil || !strings.Contains(err.Error(), bad+":2:") {
		t.Errorf("got %v, want a fault in line 2 of %s", err, bad)
	}
}

// folder is a folder of agents.
type folder struct {
	t   *testing.T
	dir string
}

func (f folder) write(name, text string) {
	f.t.Helper()
	must.Do(f.t, os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600))
}

func (f folder) remove(name string) {
	f.t.Helper()
	must.Do(f.t, os.Remove(filepath.Join(f.dir, name)))
}

// reload reads the folder again, and returns a line for each file.
func (f folder) reload(c *agents.Catalog) []string {
	f.t.Helper()
	files := must.Get(c.Reload(f.dir, known(), "assistant"))(f.t)
	var lines []string
	for _, file := range files {
		compare.Equal(f.t, "want a version of the agent that is there, and none else", file.Agent == "" || file.Change == core.AgentRemoved, file.Version == "")
		line := strings.Join(append([]string{file.File, string(file.Change), file.Agent}, file.Problems...), " ")
		lines = append(lines, strings.ReplaceAll(line, f.dir+"/", ""))
	}
	return lines
}

func prompt(t *testing.T, c *agents.Catalog, name string) string {
	t.Helper()
	agent, err := c.Get(name)
	if err != nil {
		return "(" + name + " is gone)"
	}
	return agent.SystemPrompt
}

// What changed in the folder counts after a reload; a broken file keeps its agent and says
// where it is broken.
func TestReload(t *testing.T) {
	t.Parallel()
	f := folder{t, t.TempDir()}
	f.write("same.yaml", "name: same\nsystem_prompt: same\n")
	f.write("edited.yaml", "name: edited\nsystem_prompt: old\n")
	f.write("broken.yaml", "name: broken\nsystem_prompt: old\n")
	f.write("gone.yaml", "name: gone\nsystem_prompt: old\n")
	f.write("quick.yaml", "name: quick\nsystem_prompt: mine\n")
	f.write("renamed.yaml", "name: before\nsystem_prompt: old\n")
	c := must.Get(agents.LoadCatalog(f.dir, known()))(t)
	f.write("edited.yaml", "name: edited\nsystem_prompt: new\n")
	f.write("broken.yaml", "name: broken\nsystem_prmpt: new\n")
	f.write("renamed.yaml", "name: after\nsystem_prompt: new\n")
	f.write("added.yaml", "name: added\nsystem_prompt: new\n")
	f.write("bad.yaml", "name: [1]\n")
	f.remove("gone.yaml")
	f.remove("quick.yaml")
	want := []string{
		"added.yaml added added",
		"bad.yaml broken ",
		"broken.yaml broken broken broken.yaml:2:1: system_prmpt is not a known field; did you mean system_prompt?",
		"edited.yaml changed edited",
		"gone.yaml removed gone",
		"quick.yaml removed quick",
		"renamed.yaml changed after",
		"same.yaml unchanged same",
	}
	got := f.reload(c)
	for i := range got {
		compare.True(t, i < len(want) && strings.HasPrefix(got[i], want[i]), "line %d: got %q\nwant one that begins as in %q", i, got[i], want)
	}
	for name, want := range map[string]string{
		"same": "same", "edited": "new", "broken": "old", "added": "new", "after": "new",
		"gone": "(gone is gone)", "before": "(before is gone)",
	} {
		compare.Equal(t, fmt.Sprintf("agent %s: prompt", name), want, prompt(t, c, name))
	}
	if got := prompt(t, c, "quick"); got == "mine" || strings.HasPrefix(got, "(") {
		t.Errorf("quick: got %q, want the built-in agent again", got)
	}
	// A broken file that is mended counts, also the second time.
	f.write("broken.yaml", "name: broken\nsystem_prompt: new\n")
	f.remove("bad.yaml")
	compare.Equal(t, "mended", "broken.yaml changed broken", f.reload(c)[1])
	compare.Equal(t, "mended: the prompt", "new", prompt(t, c, "broken"))
}

// Two files that want one name: the one that has it keeps it.
func TestReloadOfTwins(t *testing.T) {
	t.Parallel()
	f := folder{t, t.TempDir()}
	f.write("b.yaml", "name: one\nsystem_prompt: first\n")
	c := must.Get(agents.LoadCatalog(f.dir, known()))(t)
	f.write("a.yaml", "name: one\nsystem_prompt: second\n")
	f.write("b.yaml", "nme: one\n")
	got := f.reload(c)
	if len(got) != 2 || got[0] != "a.yaml broken  a.yaml: agent one is in b.yaml too; give one another name" || !strings.HasPrefix(got[1], "b.yaml broken one ") {
		t.Errorf("got %q, want both broken and the agent kept", got)
	}
	compare.Equal(t, "the prompt: want that of the file that had the name", "first", prompt(t, c, "one"))
}

// Without the folder, and without the default agent, nothing changes.
func TestReloadThatChangesNothing(t *testing.T) {
	t.Parallel()
	f := folder{t, t.TempDir()}
	f.write("one.yaml", "name: one\nsystem_prompt: first\n")
	c := must.Get(agents.LoadCatalog(f.dir, known()))(t)
	unchanged := func(what string) {
		t.Helper()
		if files, err := c.Reload(f.dir, known(), "one"); err == nil || len(files) != 0 {
			t.Errorf("%s: got %v and no error", what, files)
		}
		compare.Equal(t, what+": the prompt: want the agent as it was", "first", prompt(t, c, "one"))
	}
	f.remove("one.yaml")
	unchanged("no default agent")
	must.Do(t, os.RemoveAll(f.dir))
	unchanged("no folder")
}

func TestLoadNotAFolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agents")
	must.Do(t, os.WriteFile(path, nil, 0o600))
	if _, err := agents.LoadCatalog(path, known()); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("LoadCatalog of a file: got %v, want that it is not a folder", err)
	}
}

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
