package agents_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"bobbin/app/agents"
	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/tests/compare"
	"bobbin/tests/golden"
	"bobbin/tests/must"
)

// TestLoadFaults: every fault tells file, line and column, and what is allowed.
func TestLoadFaults(t *testing.T) {
	t.Parallel()
	faults := func(_, file string) string {
		_, err := load(t, map[string]string{"a.yaml": file})
		return fmt.Sprint(err)
	}
	golden.Cases(t, "testdata/faults.txt", faults)
	compare.Equal(t, "too large", "agents/a.yaml: the file has more than 1048576 bytes; make it smaller", faults("", "name: a\nsystem_prompt: "+strings.Repeat("x", 10<<20)))
}

// All faults of all files come at once.
func TestLoadAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := load(t, map[string]string{
		"a.yaml": "name: same\n", "b.yaml": "name: same\n", "c.yml": "name: c\n", "d.yaml": "nam: d\n", "e.yaml": "x",
	})
	want := `agents/b.yaml: agent same is in agents/a.yaml too; give one another name
agents/c.yml: only *.yaml is read; rename the file
agents/d.yaml:1:1: nam is not a known field; did you mean name?
agents/d.yaml: name is missing
agents/e.yaml:1:1: expected fields and values, such as name: helper`
	compare.Equal(t, "faults", want, err.Error())
}

// FuzzParse: whatever the file, it is a valid agent or a fault; nothing panics.
func FuzzParse(f *testing.F) {
	for _, text := range []string{weatherTool, "name: a", "name: &a a\nmodel: *a\n", "a: &a [*a]", "context: &c {policy: budget}\ncompaction: *c\n", "name: !!binary aGk=\n", "? [x]\n: y\n", "tools: &t [a, *t]\n", "---\n...\n", "name: a\nmax_iterations: 0x10\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		agent, err := agents.ParseFile("a.yaml", text, known())
		if err != nil {
			compare.True(t, agent.Name == "" && strings.HasPrefix(err.Error(), "a.yaml:"), "got agent %q and error %v, want no agent and an error that names the file", agent.Name, err)
			return
		}
		compare.True(t, agent.Name != "" && agent.Version != "" && agent.Tools != nil, "got %+v, want a name, a version and tools", agent)
	})
}

// reference is the page with the keys of agents' files.
const reference = "../../docs/AGENTS.md"

// TestReference: docs/AGENTS.md documents every key, and nothing else. Run with -update to
// write the tables anew.
func TestReference(t *testing.T) {
	t.Parallel()
	parameter := regexp.MustCompile(`^(temperature|top_p|max_output_tokens|stop|seed|reasoning_effort|response_format\..*)$`)
	section := func(prefix string) string {
		return keyTable(prefix, func(path string) bool { return strings.HasPrefix(path, prefix) })
	}
	checkTables(t, reference, [][2]string{
		{"## The agent", keyTable("", func(path string) bool { return !strings.Contains(path, ".") && !parameter.MatchString(path) })},
		{"## Parameters of the model", keyTable("", parameter.MatchString)},
		{"## context", section("context.")}, {"The values of the policies", policyTable(t)},
		{"## compaction", section("compaction.")}, {"## tool_settings", section("tool_settings.<tool>.")},
	})
}

// checkTables compares the first table after each text of a page with what the code says.
func checkTables(t *testing.T, path string, tables [][2]string) {
	t.Helper()
	data := must.Get(os.ReadFile(path))(t)
	page := string(data)
	for _, table := range tables {
		before, after, ok := strings.Cut(page, "\n"+table[0])
		text, rest, ok2 := strings.Cut(after, "\n|")
		if _, behind, more := strings.Cut(rest, "\n\n"); more {
			rest = "\n" + behind
		} else {
			rest = "" // the page ends with the table
		}
		if !ok || !ok2 {
			t.Fatalf("%s has no table after %q", path, table[0])
		}
		page = before + "\n" + table[0] + text + "\n" + table[1] + rest
	}
	golden.Check(t, path, page)
}

// keyTable returns the table of some of the keys, without the prefix.
func keyTable(prefix string, has func(path string) bool) string {
	var b strings.Builder
	b.WriteString("| key | type | default | allowed | meaning |\n|---|---|---|---|---|\n")
	for _, k := range agents.FileKeys() {
		if has(k.Path) {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", strings.TrimPrefix(k.Path, prefix), k.Type, k.Default, k.Bounds, k.Meaning)
		}
	}
	return b.String()
}

// policyTable returns what each policy has where an agent's file says nothing.
func policyTable(t *testing.T) string {
	t.Helper()
	names := contextwindow.PresetNames()
	rows := map[string][]string{}
	var order []string
	for _, name := range names {
		fields := must.Get(contextwindow.Explain(contextwindow.Global{}, core.Agent{Context: core.ContextSettings{Policy: name}}))(t)
		for _, f := range fields[1:] { // not the policy
			key, isPolicys := strings.CutPrefix(f.Name, "context.")
			if !isPolicys {
				break
			}
			if rows[key] == nil {
				order = append(order, key)
			}
			rows[key] = append(rows[key], f.Value)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| | `%s` |\n|---|%s\n", strings.Join(names, "` | `"), strings.Repeat("---|", len(names)))
	for _, name := range order {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, strings.Join(rows[name], " | "))
	}
	return b.String()
}
