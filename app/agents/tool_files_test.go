package agents_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/golden"
	"bobbin/tests/must"
)

// toolFolders is a folder of agents beside one of tools.
type toolFolders struct {
	t    *testing.T
	root string
}

func newToolFolders(t *testing.T) toolFolders {
	t.Helper()
	f := toolFolders{t, t.TempDir()}
	for _, dir := range []string{"agents", "tools"} {
		must.Do(t, os.Mkdir(filepath.Join(f.root, dir), 0o755))
	}
	return f
}

// write writes a file such as tools/weather.yaml.
func (f toolFolders) write(name, text string) {
	f.t.Helper()
	must.Do(f.t, os.WriteFile(filepath.Join(f.root, name), []byte(text), 0o644))
}

func (f toolFolders) agents() string { return filepath.Join(f.root, "agents") }

// known allows the kinds.
func (f toolFolders) known(kinds ...core.ToolKind) agents.KnownParts {
	k := known()
	k.ToolsDir, k.Kinds = filepath.Join(f.root, "tools"), kinds
	return k
}

const weatherTool = `name: weather
kind: http
description: The weather of a city.
url: https://api.example.com/v1/weather?city={city}
bearer: WEATHER_TOKEN
timeout: 5s
approval: first
parameters:
  type: object
  properties:
    city: {type: string}
  required: [city]
`

// A tool is described in a file of its own, which agents name, or in an agent's file. What describes
// it is part of the agent's version.
func TestToolDefinitions(t *testing.T) {
	t.Parallel()
	f := newToolFolders(t)
	f.write("tools/weather.yaml", weatherTool)
	f.write("tools/files.yaml", "name: files\nkind: mcp\ncommand: npx\nargs: [-y, server]\nenv: [HOME, MODE=read]\nonly: [read]\n")
	f.write("agents/a.yaml", `name: a
tools:
  - calculator
  - weather
  - files__read
  - name: report
    kind: command
    description: Writes a report.
    command: ./report.sh
    max_memory_mib: 64
`)
	c, err := agents.LoadCatalog(f.agents(), f.known(core.ToolKinds()...))
	must.Do(t, err)
	a, _ := c.Get("a")
	compare.Equal(t, "tools", []string{"calculator", "weather", "files__read", "report"}, a.Tools)
	var names []string
	for _, d := range a.Definitions {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff([]string{"files", "report", "weather"}, names); diff != "" {
		t.Fatalf("definitions (-want +got):\n%s", diff)
	}
	w := a.Definitions[2]
	if w.Kind != core.ToolHTTP || w.Bearer != "WEATHER_TOKEN" || w.Timeout != core.Duration(5*time.Second) || w.Approval != core.ApprovalFirst ||
		string(w.Parameters) != `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}` {
		t.Errorf("got %+v", w)
	}
	r := a.Definitions[1]
	compare.Equal(t, "limits and file", []any{64, "a.yaml"}, []any{r.MaxMemory, filepath.Base(r.File)})
	other, _ := c.Get("assistant")
	compare.Equal(t, "an agent without them has", 0, len(other.Definitions))
	f.write("tools/weather.yaml", strings.Replace(weatherTool, "5s", "6s", 1))
	c, err = agents.LoadCatalog(f.agents(), f.known(core.ToolKinds()...))
	must.Do(t, err)
	if b, _ := c.Get("a"); b.Version == a.Version {
		t.Errorf("another tool, and the same version %s", b.Version)
	}
}

// A folder of tools may be anybody's: while no kind is allowed, it is not used. An agent that names a tool
// of it, or has one of a kind that is not allowed, works without it and says how to allow it.
func TestToolsOfFilesAreOff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent   string
		allowed []core.ToolKind
		want    string // of what is left out, the beginning
	}{
		"nobody uses it":     {"tools: [calculator]", nil, ""},
		"a file":             {"tools: [weather, calculator]\ntool_settings: {weather: {timeout: 5s}}", nil, "the tool weather is left out: tools/weather.yaml describes the tool weather, and tools.allow does not have its kind http; "},
		"in one line":        {"tools: [files__read, calculator]", nil, "the tool files__read is left out: tools/x.yaml describes the tool files, and tools.allow does not have its kind mcp; "},
		"another kind":       {"tools: [files, weather, calculator]", []core.ToolKind{core.ToolHTTP}, "the tool files is left out: tools/x.yaml describes the tool files, "},
		"in an agent's file": {"tools: [calculator, {name: x, kind: command, description: d, command: sh}]", []core.ToolKind{core.ToolHTTP}, "the tool x is left out: agents/a.yaml describes the tool x, and tools.allow does not have its kind command; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newToolFolders(t)
			f.write("tools/weather.yaml", weatherTool)
			f.write("tools/x.yaml", `{"name": files, kind: mcp, command: npx}`)
			f.write("agents/a.yaml", "name: a\n"+c.agent+"\n")
			catalog := must.Get(agents.LoadCatalog(f.agents(), f.known(c.allowed...)))(t)
			a, _ := catalog.Get("a")
			got := strings.ReplaceAll(strings.Join(a.LeftOut, "\n"), f.root+"/", "")
			if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") || !slices.Contains(a.Tools, "calculator") || slices.Contains(a.Tools, "files") || slices.Contains(a.Tools, "x") {
				t.Errorf("got %q, tools %q", got, a.Tools)
			}
			if c.want != "" && !strings.HasSuffix(strings.Split(got, "\n")[0], "set tools.allow, such as BOBBIN_TOOLS_ALLOW="+strings.Split(strings.Split(got, "kind ")[1], ";")[0]) {
				t.Errorf("got %q, want how it is allowed", got)
			}
		})
	}
}

// A definition that is right in itself may not work, or surprise.
func TestToolWarnings(t *testing.T) {
	t.Parallel()
	for d, want := range map[*core.ToolDefinition]int{
		{URL: "http://127.0.0.1:8000/mcp"}:                                               1,
		{URL: "http://localhost/", PrivateHosts: []string{"localhost"}}:                  0,
		{URL: "https://example.com", OAuth: core.OAuthClient{TokenURL: "http://[::1]/"}}: 1,
		{Command: "npx", Args: []string{"server", "."}}:                                  1,
		{Command: "npx", Args: []string{"server", "."}, Dir: "/srv/docs"}:                0,
		{URL: "https://example.com", Only: make([]string, core.MaxTools+1)}:              1,
	} {
		compare.Equal(t, fmt.Sprintf("%+v", d), want, len(agents.ToolWarnings(*d)))
	}
}

// Every fault of a definition tells file, line and column, and what is allowed.
func TestToolDefinitionFaults(t *testing.T) {
	t.Parallel()
	golden.Cases(t, "testdata/tool_faults.txt", func(_, file string) string {
		f := newToolFolders(t)
		f.write("tools/x.yaml", file)
		_, err := agents.LoadCatalog(f.agents(), f.known(core.ToolKinds()...))
		return strings.ReplaceAll(fmt.Sprint(err), f.root+"/", "")
	})
}

// The faults of a definition in an agent's file are those of a file of its own, at their places.
func TestInlineDefinitionFaults(t *testing.T) {
	t.Parallel()
	f := newToolFolders(t)
	f.write("tools/weather.yaml", weatherTool)
	f.write("agents/a.yaml", "name: a\ntools:\n  - name: weather\n    kind: http\n    description: d\n    url: https://a.example/{id}\n  - wether\n")
	_, err := agents.LoadCatalog(f.agents(), f.known(core.ToolKinds()...))
	at := filepath.Join(f.root, "agents/a.yaml") + ":"
	want := at + "3:5: tool weather is in " + filepath.Join(f.root, "tools/weather.yaml") + " too; give one another name\n" +
		at + "6:5: tools[0].url has {id}, and parameters has no property id\n" +
		at + `7:5: tool "wether" does not exist; did you mean weather?`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// Reading the agents again reads the tools: an agent whose tool has changed has another version, and a
// broken file keeps the tool that it had.
func TestReloadOfTools(t *testing.T) {
	t.Parallel()
	f := newToolFolders(t)
	f.write("tools/weather.yaml", weatherTool)
	f.write("agents/a.yaml", "name: a\ntools: [weather]\n")
	c := must.Get(agents.LoadCatalog(f.agents(), f.known(core.ToolHTTP)))(t)
	before, _ := c.Get("a")
	reload := func() map[string]core.AgentFile {
		t.Helper()
		list := must.Get(c.Reload(f.agents(), f.known(core.ToolHTTP), "a"))(t)
		out := map[string]core.AgentFile{}
		for _, file := range list {
			out[filepath.Base(file.File)] = file
		}
		return out
	}
	f.write("tools/weather.yaml", "name: weather\nkind: http\n")
	got := reload()
	w := got["weather.yaml"]
	compare.Equal(t, "broken", []any{core.AgentBroken, "weather", 2}, []any{w.Change, w.Tool, len(w.Problems)})
	if a, _ := c.Get("a"); a.Version != before.Version || got["a.yaml"].Change != core.AgentUnchanged {
		t.Errorf("the agent has changed with a broken file: %+v", got["a.yaml"])
	}
	f.write("tools/weather.yaml", strings.Replace(weatherTool, "5s", "6s", 1))
	got = reload()
	compare.Equal(t, "changed", []core.AgentChange{core.AgentChanged, core.AgentChanged}, []core.AgentChange{got["weather.yaml"].Change, got["a.yaml"].Change})
	must.Do(t, os.Remove(filepath.Join(f.root, "tools/weather.yaml")))
	got = reload()
	compare.Equal(t, "removed", []core.AgentChange{core.AgentRemoved, core.AgentBroken}, []core.AgentChange{got["weather.yaml"].Change, got["a.yaml"].Change})
	if a, _ := c.Get("a"); len(a.Definitions) != 1 {
		t.Errorf("the agent of before has lost its tool: %+v", a)
	}
}

// toolReference is the page with the table of the keys of definitions.
const toolReference = "../../docs/TOOLS.md"

// TestToolReference: docs/TOOLS.md documents every key of a definition, and nothing else.
func TestToolReference(t *testing.T) {
	t.Parallel()
	checkTables(t, toolReference, [][2]string{{"## Keys", toolTable()}})
}

// toolTable returns the table of the keys.
func toolTable() string {
	var b strings.Builder
	b.WriteString("| key | kinds | type | default | allowed | meaning |\n|---|---|---|---|---|---|\n")
	for _, k := range agents.ToolKeys() {
		kinds := "all"
		if len(k.Kinds) > 0 {
			kinds = strings.Trim(strings.ReplaceAll(fmt.Sprint(k.Kinds), " ", ", "), "[]")
		}
		value := k.Default
		if value == "" && len(k.Required) > 0 {
			value = "required"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", k.Path, kinds, k.Type, value, k.Bounds, k.Meaning)
	}
	return b.String()
}

// yamlBlock matches the files in a page.
var yamlBlock = regexp.MustCompile("(?s)```yaml\n# (tools|agents)/([a-z_]+)\\.yaml\n(.*?)```")

// Every file in docs/TOOLS.md and docs/AGENTS.md can be copied as it is.
func TestReferenceExamples(t *testing.T) {
	t.Parallel()
	for page, least := range map[string]int{toolReference: 7, reference: 1} {
		text := must.Get(os.ReadFile(page))(t)
		blocks := yamlBlock.FindAllStringSubmatch(string(text), -1)
		for _, block := range blocks {
			f := newToolFolders(t)
			must.Do(t, os.Mkdir(filepath.Join(f.root, "tools/openapi"), 0o755))
			f.write("tools/openapi/shop.yaml", strings.ReplaceAll(shopDocument, "\t", "  "))
			f.write("tools/files.yaml", "name: files\nkind: mcp\ncommand: npx\n")
			f.write(block[1]+"/"+block[2]+".yaml", block[3])
			compare.Error(t, fmt.Sprintf("%s/%s.yaml", block[1], block[2]), nil, compare.ErrorOf(agents.LoadCatalog(f.agents(), f.known(core.ToolKinds()...))))
		}
		if len(blocks) < least {
			t.Errorf("%s: found %d files", page, len(blocks))
		}
	}
}

const shopDocument = `openapi: 3.1.0
info: {title: Shop, version: "1"}
servers: [{url: "https://shop.example.com"}]
paths:
	/items/{id}:
		get: {operationId: getItem, parameters: [{name: id, in: path, required: true, schema: {type: string}}], responses: {}}
	/orders:
		post: {operationId: createOrder, responses: {}}
`
