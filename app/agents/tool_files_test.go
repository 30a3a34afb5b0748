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
	if r := a.Definitions[1]; r.MaxMemory != 64 || filepath.Base(r.File) != "a.yaml" {
		t.Errorf("got %+v", r)
	}
	other, _ := c.Get("assistant")
	if len(other.Definitions) != 0 {
		t.Errorf("an agent without them has %+v", other.Definitions)
	}
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
	const http = "name: x\nkind: http\ndescription: d\n"
	const word = "name: x\nkind: command\ndescription: d\ncommand: sh\n"
	for name, c := range map[string]struct{ file, want string }{
		"no kind":          {"name: x\n", " kind is missing; use one of mcp, http, openapi, command"},
		"unknown kind":     {"name: x\nkind: htpp\n", `2:1: kind "htpp" does not exist; did you mean http?`},
		"unknown key":      {http + "url: https://a.example\nurls: x\n", "5:1: urls is not a known field; did you mean url?"},
		"missing keys":     {"name: x\nkind: http\n", " description is missing\n url is missing"},
		"another kind's":   {http + "url: https://a.example\ncommand: sh\n", "5:1: command is not for the kind http; remove it"},
		"name":             {"name: a__b\nkind: mcp\ncommand: sh\n", "1:1: name \"a__b\" is not allowed; use 1 to 64 letters, digits, - and _ without __; 1 to 32 for mcp and openapi"},
		"long name":        {"name: " + strings.Repeat("a", 33) + "\nkind: mcp\ncommand: sh\n", `1:1: name "` + strings.Repeat("a", 33) + `" has 33 letters; use at most 32, as it is the beginning of the names of several tools`},
		"built-in name":    {"name: calculator\nkind: mcp\ncommand: sh\n", "1:1: calculator is a built-in tool; choose another name"},
		"both":             {"name: x\nkind: mcp\ncommand: sh\nurl: https://a.example\n", " write either command, for a server that Bobbin starts, or url, for one that runs already"},
		"oauth, empty":     {"name: x\nkind: mcp\nurl: https://a.example/\noauth: {}\n", "4:1: oauth.client_id is missing\n4:1: oauth.client_secret is missing\n4:1: oauth.token_url is missing"},
		"oauth":            {"name: x\nkind: mcp\nurl: https://a.example/\nbearer: B\noauth: {token_url: \"ftp://a\", client_id: a, client_secret: S}\n", "5:1: write either bearer, for a token that is there, or oauth, for tokens that a token server issues\n5:9: oauth.token_url must begin with http:// or https://"},
		"oauth, a secret":  {"name: x\nkind: mcp\nurl: https://a.example/\noauth: {token_url: \"https://a\", client_id: a, client_secret: sk-4711}\n", "4:47: oauth.client_secret must be the name of a variable of the environment, not the secret itself"},
		"oauth, in clear":  {"name: x\nkind: mcp\nurl: https://a.example/\noauth: {token_url: \"http://a.example/\", client_id: a, client_secret: B}\n", "4:9: oauth.token_url must be https, because it gets the secret; http is for hosts of private_hosts"},
		"oauth, a program": {"name: x\nkind: mcp\ncommand: sh\noauth: {token_url: \"https://a.example/\", client_id: a, client_secret: B}\n", "4:1: oauth is for a server with url; remove it"},
		"oauth, http":      {http + "url: https://a.example/\noauth: {client_id: a, client_secret: B, token_url: c}\n", "5:9: oauth.client_id is not for the kind http; remove it"},
		"headers":          {"name: x\nkind: mcp\ncommand: sh\nheaders: {A: b}\n", "4:1: headers is for a server with url; remove it"},
		"scheme":           {http + "url: ftp://a.example\n", "4:1: url must begin with http:// or https://"},
		"host":             {http + "url: https://{host}/\n", "4:1: url must have a host, which no argument may change"},
		"password":         {http + "url: https://u:secret@a.example/\n", "4:1: url has a user or a password; use headers or bearer"},
		"unknown argument": {http + "url: https://a.example/{id}\n", "4:1: url has {id}, and parameters has no property id"},
		"a brace":          {http + "url: https://a.example/\nquery: {q: 'a}'}\n", "5:9: query.q has a brace that is alone; write {argument}"},
		"method":           {http + "url: https://a.example/\nmethod: get\n", `5:1: method "get" does not exist; did you mean GET?`},
		"header":           {http + "url: https://a.example/\nheaders: {Host: x, 'a b': y, X-Key: '${A-B}'}\n", "5:11: headers.Host is a header that the request has by itself; remove it\n5:20: headers.a b is not the name of a header\n5:30: headers.X-Key: write a variable of the environment as ${NAME}"},
		"a token":          {http + "url: https://a.example/\nbearer: sk-4711\n", "5:1: bearer must be the name of a variable of the environment, not the token itself"},
		"pointer":          {http + "url: https://a.example/\nresult: a.b\n", "5:1: result is not a JSON Pointer; begin with /, such as /items/0/name"},
		"schema":           {word + "parameters: {type: array}\n", `5:1: parameters: it must have "type: object", as arguments are an object`},
		"no schema":        {word + "parameters: {type: object, properties: 5}\n", "5:1: parameters: it is not a JSON Schema: "},
		"remote schema":    {word + "parameters: {type: object, $ref: 'https://a.example/s'}\n", "5:1: parameters: it is not a JSON Schema: "},
		"variable":         {word + "env: [A, 'B C']\n", "5:10: env[1] is not a variable; write NAME, or NAME=value"},
		"memory":           {word + "max_memory_mib: 1\n", "5:1: max_memory_mib is 1; use 16 to 65536"},
		"limits":           {word + "approval: maybe\ntimeout: 1ms\nmax_output_bytes: 1\n", "5:1: approval must be always (a person must agree to every call), first (until one was approved in the session) or never\n6:1: timeout \"1ms\" is not a time with a unit, such as 30s, from 100ms to 10m\n7:1: max_output_bytes is 1; use 256 to 8388608"},
		"server":           {"name: x\nkind: openapi\ndocument: https://a.example/a.yaml\noperations: [a]\nserver: https://a.example/v1?key=1\n", "5:1: server must end with its path, without a query and without {argument}"},
		"document":         {"name: x\nkind: openapi\ndocument: gone.yaml\noperations: [a]\n", "3:1: document: there is no file "},
		"an OpenAPI file":  {"openapi: 3.1.0\ninfo: {}\n", "1:1: this is an OpenAPI document, and not the description of a tool; move it to another folder and name it under document"},
		"private hosts":    {http + "url: https://a.example/\nprivate_hosts: ['http://b']\n", "5:17: private_hosts[0] \"http://b\" is not allowed; use example.com, or *.example.com for all below it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newToolFolders(t)
			f.write("tools/x.yaml", c.file)
			_, err := agents.LoadCatalog(f.agents(), f.known(core.ToolKinds()...))
			if err == nil {
				t.Fatal("got no error")
			}
			at := filepath.Join(f.root, "tools/x.yaml") + ":"
			if want := at + strings.ReplaceAll(c.want, "\n", "\n"+at); !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got\n%s\nwant\n%s", err, want)
			}
		})
	}
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
	if w := got["weather.yaml"]; w.Change != core.AgentBroken || w.Tool != "weather" || len(w.Problems) != 2 {
		t.Errorf("broken: got %+v", w)
	}
	if a, _ := c.Get("a"); a.Version != before.Version || got["a.yaml"].Change != core.AgentUnchanged {
		t.Errorf("the agent has changed with a broken file: %+v", got["a.yaml"])
	}
	f.write("tools/weather.yaml", strings.Replace(weatherTool, "5s", "6s", 1))
	got = reload()
	if got["weather.yaml"].Change != core.AgentChanged || got["a.yaml"].Change != core.AgentChanged {
		t.Errorf("changed: got %+v", got)
	}
	must.Do(t, os.Remove(filepath.Join(f.root, "tools/weather.yaml")))
	got = reload()
	if got["weather.yaml"].Change != core.AgentRemoved || got["a.yaml"].Change != core.AgentBroken {
		t.Errorf("removed: got %+v", got)
	}
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
			kinds = ""
			for i, kind := range k.Kinds {
				if i > 0 {
					kinds += ", "
				}
				kinds += string(kind)
			}
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
