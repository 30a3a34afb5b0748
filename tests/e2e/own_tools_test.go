package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

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
		run := asksIn(t, h, apptest.NewSession(t, h.Client, core.Session{Agent: "own"}), everything)
		var asked []string
		for _, a := range run.Approvals {
			asked = append(asked, a.Tool)
		}
		if want := []string{"local__write", "remote__write", "shop__putItem", "report"}; !slices.Equal(asked, want) {
			t.Errorf("asked for %v, want %v", asked, want)
		}
		for i, a := range run.Approvals {
			if _, err := h.Decide(t.Context(), run.ID, a.ID, core.ApprovalDecision{Approve: i != 1}); err != nil {
				t.Fatal(err)
			}
		}
		wantEnd(t, h, run.ID, core.RunSucceeded, "local__echo: over stdio", "remote__echo: over HTTP", "weather: GET /weather/K%C3%B6ln%2FBonn", "calculator: 42",
			"local__write: wrote one", "remote__write: not approved", "shop__putItem: {\"now\":{\"text\":\"PUT /items/7\"}}", "report: {\"month\":\"May\"} for me\n")
	})
}

// A run has the tools that there are when it begins; the agent that others see has them too, and the
// version of the run has their hash.
func TestToolsOfARun(t *testing.T) {
	t.Parallel()
	h := allKinds(t, dbtest.MigratedSQLiteURL(t))
	id := apptest.NewSession(t, h.Client, core.Session{Agent: "own"})
	before := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "hello"})
	agent := agentNamed(t, h, "own")
	if !slices.Contains(agent.Tools, "local__write") || slices.Contains(agent.Tools, "local") {
		t.Fatalf("got the tools %v", agent.Tools)
	}
	got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "change\ncall local__change {}"})
	if got.Run.AgentVersion != agent.Version {
		t.Errorf("the run has the version %s, the agent %s", got.Run.AgentVersion, agent.Version)
	}
	for deadline := time.Now().Add(apptest.Patience); ; {
		if slices.Contains(agentNamed(t, h, "own").Tools, "local__new1") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the new tool does not come")
		}
	}
	after := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "again\ncall local__write {}"})
	if after.Run.AgentVersion == got.Run.AgentVersion || before.Run.AgentVersion == "" {
		t.Errorf("other tools, and the versions %s, %s, %s", before.Run.AgentVersion, got.Run.AgentVersion, after.Run.AgentVersion)
	}
	if m := after.Messages[2]; !strings.Contains(m.Content, `there is no tool "local__write"`) {
		t.Errorf("a tool that has vanished: got %q", m.Content)
	}
}

// agentNamed returns the agent as clients see it.
func agentNamed(t *testing.T, h *apptest.Bobbin, name string) core.AgentDetail {
	t.Helper()
	list, err := h.Agents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(a core.AgentDetail) bool { return a.Name == name })
	return list[i]
}

// A server that is down is not fatal: the start and the conversation go on without its tools.
func TestToolServerIsDown(t *testing.T) {
	t.Parallel()
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 32_000, 2048, obeying(t)), mcpTool(t, "broken", "refuse"),
		apptest.WithAgent("own", "name: own\ntools: [broken, calculator]\n"))
	got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: apptest.NewSession(t, h.Client, core.Session{Agent: "own"}), Content: "go\ncall calculator {\"expression\":\"6*7\"}\ncall broken__echo {}"})
	if got.Messages[2].Content != "42" || !strings.Contains(got.Messages[3].Content, `there is no tool "broken__echo"`) {
		t.Errorf("got %q, %q", got.Messages[2].Content, got.Messages[3].Content)
	}
	if log := h.Log.String(); !strings.Contains(log, "mcp server is not connected") || !strings.Contains(log, "cannot open the database") {
		t.Errorf("the log does not say it: %s", log)
	}
}

// What the model and the log get of tools that work, die and lie.
func TestTools(t *testing.T) {
	h := allKinds(t, dbtest.MigratedSQLiteURL(t))
	id := apptest.NewSession(t, h.Client, core.Session{Agent: "own"})
	run := waitsForTools(t, h, id, everything+"\ncall lookup {\"name\":\"Ada\"}", lookup)
	for _, a := range run.Approvals {
		if a.Kind == core.KindClientTool {
			decideOne(t, h, run, a.Tool, core.ApprovalDecision{Result: new("in London")})
			continue
		}
		decideOne(t, h, run, a.Tool, core.ApprovalDecision{Approve: true})
	}
	_, results := ended(t, h, run.ID)
	if len(results) != 9 || len(run.Approvals) != 5 || strings.Contains(strings.Join(results, " "), "error:") || !slices.Contains(results, "lookup: in London") {
		t.Errorf("got %d results, %d questions", len(results), len(run.Approvals))
	}
	turnsWithoutTools(t, h, id)
	killInMidCall(t, h, id)
	manyCalls(t, h, id)
	lyingServers(t, h)
}

// turnsWithoutTools has turns that call no tool: the goroutines of idle servers do not grow with the runs.
func turnsWithoutTools(t *testing.T, h *apptest.Bobbin, id core.SessionID) {
	t.Helper()
	apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "hello"})
	before := runtime.NumGoroutine()
	for range 20 {
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "hello"})
	}
	for begin := time.Now(); runtime.NumGoroutine() > before; apptest.PauseBriefly(t) {
		if time.Since(begin) > apptest.Patience {
			t.Fatalf("%d goroutines after 20 turns, %d before", runtime.NumGoroutine(), before)
		}
	}
}

// killInMidCall kills the MCP server while it executes a call.
func killInMidCall(t *testing.T, h *apptest.Bobbin, id core.SessionID) {
	t.Helper()
	pid, err := strconv.Atoi(apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "who\ncall local__pid {}"}).Messages[2].Content)
	if err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(t.TempDir(), "begun")
	var once sync.Once
	got := apptest.ReadTurn(t, func(yield func(core.Event, error) bool) {
		for e, err := range h.Client.Send(t.Context(), core.SendMessage{SessionID: id, Content: fmt.Sprintf("wait\ncall local__sleep {\"mark\":%q}", mark)}) {
			if e.Type == core.EventToolStarted {
				once.Do(func() { go killAsleep(mark, pid) })
			}
			if !yield(e, err) {
				return
			}
		}
	})
	if !strings.Contains(got.Messages[2].Content, "was lost during the call; whether it took effect is not known") {
		t.Errorf("got %s", got.Messages[2].Content)
	}
	begin := time.Now()
	for {
		answer := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "again\ncall local__echo {\"text\":\"back\"}"}).Messages[2].Content
		if answer == "back" {
			break
		}
		if time.Since(begin) > apptest.Patience {
			t.Fatalf("the server does not come back: %s", answer)
		}
	}
}

// killAsleep kills the server as soon as it executes the call, which writes a file.
func killAsleep(mark string, pid int) {
	for deadline := time.Now().Add(apptest.Patience); time.Now().Before(deadline); runtime.Gosched() {
		if _, err := os.Stat(mark); err == nil {
			break
		}
	}
	_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
}

// manyCalls makes the model call a tool many times in one message.
func manyCalls(t *testing.T, h *apptest.Bobbin, id core.SessionID) {
	t.Helper()
	const n = 20
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf(`call %s {"text":"%d"}`, []string{"local__echo", "remote__echo"}[i%2], i))
	}
	got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "many\n" + strings.Join(lines, "\n")})
	right := 0
	for i := range n {
		if got.Messages[2+i].Content == strconv.Itoa(i) {
			right++
		}
	}
	if right != n {
		t.Errorf("%d of %d are right", right, n)
	}
}

// lyingServers lets an agent have the tools of servers that lie.
func lyingServers(t *testing.T, h *apptest.Bobbin) {
	t.Helper()
	lies := []string{"garbage", "complain", "flood", "long", "many", "hang"}
	for _, mode := range lies {
		mcpTool(t, mode, mode)(&h.Config)
	}
	apptest.WithAgent("liars", "name: liars\ntools: ["+strings.Join(lies, ", ")+"]\n")(&h.Config)
	if _, err := h.App.ReloadAgents(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: apptest.NewSession(t, h.Client, core.Session{Agent: "liars"}), Content: "go\ncall garbage__echo {\"text\":\"x\"}\ncall many__echo {\"text\":\"y\"}\ncall flood__echo {}"})
	count := map[string]int{}
	for _, tool := range agentNamed(t, h, "liars").Tools {
		name, _, _ := strings.Cut(tool, core.ToolSeparator)
		count[name]++
	}
	if got.Messages[2].Content != "x" || got.Messages[3].Content != "y" || count["many"] > 128 {
		t.Errorf("got %q, %q, %d tools", got.Messages[2].Content, got.Messages[3].Content, count["many"])
	}
}
