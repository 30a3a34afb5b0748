package agents_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents"
	"bobbin/app/core"
	"bobbin/tests/must"
)

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
		if (file.Version == "") != (file.Agent == "" || file.Change == core.AgentRemoved) {
			f.t.Errorf("%+v: want a version of the agent that is there, and none else", file)
		}
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
		if i >= len(want) || !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("line %d: got %q\nwant one that begins as in %q", i, got[i], want)
		}
	}
	for name, want := range map[string]string{
		"same": "same", "edited": "new", "broken": "old", "added": "new", "after": "new",
		"gone": "(gone is gone)", "before": "(before is gone)",
	} {
		if got := prompt(t, c, name); got != want {
			t.Errorf("agent %s: got the prompt %q, want %q", name, got, want)
		}
	}
	if got := prompt(t, c, "quick"); got == "mine" || strings.HasPrefix(got, "(") {
		t.Errorf("quick: got %q, want the built-in agent again", got)
	}
	// A broken file that is mended counts, also the second time.
	f.write("broken.yaml", "name: broken\nsystem_prompt: new\n")
	f.remove("bad.yaml")
	if diff := cmp.Diff("broken.yaml changed broken", f.reload(c)[1]); diff != "" {
		t.Errorf("mended (-want +got):\n%s", diff)
	}
	if got := prompt(t, c, "broken"); got != "new" {
		t.Errorf("mended: got the prompt %q", got)
	}
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
	if got := prompt(t, c, "one"); got != "first" {
		t.Errorf("got the prompt %q, want that of the file that had the name", got)
	}
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
		if got := prompt(t, c, "one"); got != "first" {
			t.Errorf("%s: got the prompt %q, want the agent as it was", what, got)
		}
	}
	f.remove("one.yaml")
	unchanged("no default agent")
	must.Do(t, os.RemoveAll(f.dir))
	unchanged("no folder")
}
