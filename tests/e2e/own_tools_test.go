package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/mcptest"
	"bobbin/tests/provider"
)

// withTool writes a file of the folder of tools and allows all kinds.
func withTool(t *testing.T, name, text string) apptest.Setting {
	return func(c *config.Config) {
		t.Helper()
		dir := filepath.Join(filepath.Dir(c.AgentsDir), "tools")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		c.Tools.Allow = []string{"mcp", "http", "openapi", "command"}
	}
}

// mcpTool describes an MCP server that behaves in a way.
func mcpTool(t *testing.T, name, mode string) apptest.Setting {
	t.Helper()
	program, args := mcptest.Command(mode)
	return withTool(t, name+".yaml", fmt.Sprintf("name: %s\nkind: mcp\ncommand: %s\nargs: [%s, %q]\n", name, program, args[0], args[1]))
}

// obeying is a provider that calls the tools that a message names.
func obeying(t *testing.T) *provider.Server {
	t.Helper()
	return apptest.NewProvider(t, provider.Options{Record: true, Calls: provider.CallNamed})
}

// allKinds is a house whose agent "own" has a tool of each kind.
func allKinds(t *testing.T, url string, more ...apptest.Setting) *apptest.Bobbin {
	t.Helper()
	remote := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return mcptest.New("") }, nil))
	t.Cleanup(func() { remote.CloseClientConnections(); remote.Close() })
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"now":{"text":"%s %s"}}`, r.Method, r.RequestURI)
	}))
	t.Cleanup(service.Close)
	document := fmt.Sprintf(`{"openapi":"3.1.0","info":{"title":"Shop","version":"1"},"servers":[{"url":%q}],"paths":{"/items/{id}":{"put":{"operationId":"putItem",`+
		`"parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"integer"}}],"requestBody":{"content":{"application/json":{"schema":{"type":"object"}}}},"responses":{}}}}}`, service.URL)
	settings := append([]apptest.Setting{
		apptest.WithModel("house", 64_000, 2048, obeying(t)), mcpTool(t, "local", ""),
		withTool(t, "remote.yaml", "name: remote\nkind: mcp\nurl: "+remote.URL+"\nprivate_hosts: [127.0.0.1]\n"),
		withTool(t, "weather.yaml", "name: weather\nkind: http\ndescription: The weather.\nurl: "+service.URL+"/weather/{city}\nprivate_hosts: [127.0.0.1]\nresult: /now/text\nparameters: {type: object, properties: {city: {type: string}}, required: [city]}\n"),
		withTool(t, "shop.json", document), withTool(t, "shop.yaml", "name: shop\nkind: openapi\ndocument: shop.json\noperations: [putItem]\nprivate_hosts: [127.0.0.1]\n"),
		withTool(t, "report.sh", "#!/bin/sh\necho \"$(cat) for ${WHO:-nobody}\"\n"),
		apptest.WithAgent("own", `name: own
tools:
  - local
  - remote
  - weather
  - shop
  - calculator
  - {name: report, kind: command, description: Writes a report., command: ../tools/report.sh, env: [PATH, WHO=me]}
tool_settings:
  local__sleep: {approval: never}
`),
	}, more...)
	return apptest.New(t, url, settings...)
}

// everything calls a tool of each kind.
const everything = `please
call local__echo {"text":"over stdio"}
call remote__echo {"text":"over HTTP"}
call weather {"city":"Köln/Bonn"}
call local__write {"text":"one"}
call remote__write {"text":"two"}
call shop__putItem {"id":7,"body":{"name":"Bolt"}}
call report {"month":"May"}
call calculator {"expression":"6*7"}`

// Tools of all kinds work in one conversation. What only reads runs immediately, the others when a
// person has approved them.
func TestOwnTools(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		h := allKinds(t, url)
		run := asksIn(t, h, apptest.NewSession(t, h.Client, ops.NewSession{Agent: "own"}), everything)
		var asked []string
		for _, a := range run.Approvals {
			asked = append(asked, a.Tool)
		}
		if want := []string{"local__write", "remote__write", "shop__putItem", "report"}; !slices.Equal(asked, want) {
			t.Errorf("asked for %v, want %v", asked, want)
		}
		for i, a := range run.Approvals {
			decideOne(t, h, run, a.Tool, ops.Decision{Decision: map[bool]string{true: "approve", false: "deny"}[i != 1]})
		}
		wantEnd(t, h, run.ID, core.RunSucceeded, "local__echo: over stdio", "remote__echo: over HTTP", "weather: GET /weather/K%C3%B6ln%2FBonn", "calculator: 42",
			"local__write: wrote one", "remote__write: not approved", "shop__putItem: {\"now\":{\"text\":\"PUT /items/7\"}}", "report: {\"month\":\"May\"} for me\n")
	})
}

// agentNamed returns the agent as clients see it.
func agentNamed(t *testing.T, h *apptest.Bobbin, name string) core.AgentDetail {
	t.Helper()
	list := apptest.Must(client.Call(t.Context(), h, ops.ListAgents, struct{}{}))(t).Items
	i := slices.IndexFunc(list, func(a core.AgentDetail) bool { return a.Name == name })
	return list[i]
}
