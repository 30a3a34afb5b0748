package agents_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/app/agents"
	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/tests/compare"
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
