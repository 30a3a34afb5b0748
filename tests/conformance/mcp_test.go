package conformance_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// The revisions of MCP that clients speak.
const (
	revision2025 = "2025-11-25"
	revision2026 = "2026-07-28"
)

// mcpKind is a client of MCP with a revision.
type mcpKind struct {
	clientKind

	revision string
}

// mcpKinds returns the clients, at the versions of the lock files. That of Python and both revisions
// of each are for the long form. tests/e2e has the Go SDK.
func mcpKinds() []mcpKind {
	sdk := clientKind{name: "@modelcontextprotocol/sdk 1.32", script: "mcpsdk.mjs"}
	client := clientKind{name: "@modelcontextprotocol/client 2.4", script: "mcpclient.mjs"}
	python := clientKind{name: "mcp 2.3 (Python)", script: "mcphost.py", python: true}
	kinds := []mcpKind{{sdk, revision2025}, {client, revision2026}}
	if os.Getenv("BOBBIN_TEST_LONG") != "" {
		kinds = append(kinds, mcpKind{client, revision2025}, mcpKind{python, revision2025}, mcpKind{python, revision2026})
	}
	return kinds
}

// mcpUser is an MCP client at work.
type mcpUser struct {
	*bobbin

	kind mcpKind
	cl   *client
	mark string // in its questions
}

// do makes a call and returns how it ended.
func (u *mcpUser) do(t *testing.T, method string, params object) outcome {
	t.Helper()
	return await(t, u.cl.begin(t, call{Method: method, Params: params, URL: "http://" + u.addr + "/mcp", Key: aliceKey, Revision: u.kind.revision}))
}

// get makes a call that succeeds and returns its result.
func get[T any](t *testing.T, u *mcpUser, method string, params object) T {
	t.Helper()
	out := u.do(t, method, params)
	must.True(t, out.fault == nil, "%s %v: %s", method, params, out.fault)
	return decode[T](t, out.result)
}

// toolResult is the result of a tool call.
type toolResult struct {
	Content           []struct{ Text string }
	StructuredContent json.RawMessage
	IsError           bool
}

// text returns what the model of the host reads.
func (r toolResult) text() string {
	var b strings.Builder
	for _, content := range r.Content {
		b.WriteString(content.Text)
	}
	return b.String()
}

// use calls a tool that succeeds, and returns its result.
func use[T any](t *testing.T, u *mcpUser, tool string, arguments object) T {
	t.Helper()
	got := get[toolResult](t, u, "callTool", object{"name": tool, "arguments": arguments})
	if got.IsError {
		t.Fatalf("%s: %s", tool, got.text())
	}
	return decode[T](t, got.StructuredContent)
}

// wantFailure calls a tool that fails with words in its message.
func (u *mcpUser) wantFailure(t *testing.T, words, tool string, arguments object) {
	t.Helper()
	got := get[toolResult](t, u, "callTool", object{"name": tool, "arguments": arguments})
	if !got.IsError || !strings.Contains(got.text(), words) {
		t.Errorf("%s: got %v %q, want a failure with %q", tool, got.IsError, got.text(), words)
	}
}

// mcpRun is the result of the tools about runs.
type mcpRun struct {
	SessionID string         `json:"session_id"`
	RunID     core.RunID     `json:"run_id"`
	Status    core.RunStatus `json:"status"`
	Answer    string         `json:"answer"`
	Approvals []struct {
		ApprovalID core.ApprovalID `json:"approval_id"`
	} `json:"approvals"`
}

// Hosts use a Bobbin with the MCP clients that they have.
func TestMCPClients(t *testing.T) {
	t.Parallel()
	for database, url := range databases() {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			b := newBobbin(t, url(t))
			for _, kind := range mcpKinds() {
				t.Run(kind.name+" "+kind.revision, func(t *testing.T) { b.runHost(t, kind) })
			}
		})
	}
}

// runHost runs each operation with a client.
func (b *bobbin) runHost(t *testing.T, kind mcpKind) {
	t.Helper()
	mark := strings.NewReplacer(" ", "-", "/", "-", "@", "", ".", "-").Replace(kind.name + kind.revision)
	u := &mcpUser{bobbin: b, kind: kind, mark: mark, cl: startClient(t, kind.clientKind)}
	for _, o := range mcpOperations() {
		t.Run(o.name, func(t *testing.T) { o.run(t, u) })
	}
}

// block returns the text's block of code in the language that has the words.
func block(t *testing.T, text, language, words string) string {
	t.Helper()
	for part := range strings.SplitSeq(text, "```"+language+"\n") {
		code, _, _ := strings.Cut(part, "```")
		if strings.Contains(code, words) && !strings.HasPrefix(code, "#") {
			return code
		}
	}
	t.Fatalf("the page has no %s with %q", language, words)
	return ""
}

// The programs of docs/MCP.md work as they are, and its table has the tools.
func TestMCPPage(t *testing.T) {
	t.Parallel()
	b := newBobbin(t, dbtest.MigratedSQLiteURL(t))
	text, address := string(must.Get(os.ReadFile("../../docs/MCP.md"))(t)), "http://"+b.addr+"/mcp"
	for name, tt := range map[string]struct {
		program func(t testing.TB) string
		args    []string
		code    string
	}{
		"Node":   {process.FindNodeClients, []string{"--input-type=module", "-"}, block(t, text, "js", "send_message")},
		"Python": {process.FindPythonClients, []string{"-"}, block(t, text, "python", "send_message")},
		"curl":   {func(testing.TB) string { return "sh" }, []string{"-s"}, strings.ReplaceAll(block(t, text, "sh", "curl"), "http://127.0.0.1:8080/mcp", address)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), tt.program(t), tt.args...)
			cmd.Env = append(os.Environ(), "BOBBIN_MCP="+address, "BOBBIN_KEY="+aliceKey)
			cmd.Stdin, cmd.Stderr = strings.NewReader(tt.code), t.Output()
			out, err := cmd.Output()
			compare.True(t, err == nil && strings.Contains(string(out), "17 * 23"), "got %q, %v, want the answer", out, err)
		})
	}
	u := &mcpUser{bobbin: b, kind: mcpKinds()[0], cl: startClient(t, mcpKinds()[0].clientKind)}
	tools := get[struct{ Tools []struct{ Name string } }](t, u, "listTools", nil)
	for _, tool := range tools.Tools {
		compare.Contains(t, fmt.Sprintf("docs/MCP.md has no row for %s", tool.Name), "| `"+tool.Name+"` | `", text)
	}
	wantEqual(t, "rows of tools", strings.Count(text, "| `read` |")+strings.Count(text, "| `write` |"), len(tools.Tools))
}

// serverProgram returns the program of an MCP server of npm.
func serverProgram(t *testing.T, name string) string {
	t.Helper()
	return must.Get(filepath.Abs("node_modules/@modelcontextprotocol/" + name + "/dist/index.js"))(t)
}

// The MCP servers of npm are usable as tools, over standard input and output and over HTTP.
func TestMCPServers(t *testing.T) {
	t.Parallel()
	node, dir := process.FindNodeClients(t), den.Temp(t)
	must.Do(t, os.Mkdir(filepath.Join(dir, "tools"), 0o700))
	must.Do(t, os.Mkdir(filepath.Join(dir, "agents"), 0o700))
	shared := filepath.Join(dir, "shared")
	must.Do(t, os.Mkdir(shared, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(shared, "notes.txt"), []byte("the bobbin is blue"), 0o600))
	addr := process.FreeAddress(t)
	host, port, err := net.SplitHostPort(addr)
	must.Do(t, err)
	// The server takes a port and listens on every host.
	listen := `data:text/javascript,import {Server} from "node:net"; const {listen} = Server.prototype;` +
		`Server.prototype.listen = function(port, ...more) { return listen.call(this, port, "` + host + `", ...more); }`
	overHTTP := exec.Command(node, "--import", listen, serverProgram(t, "server-everything"), "streamableHttp")
	overHTTP.Dir, overHTTP.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "PORT=" + port}
	p := must.Get(den.Start(overHTTP, filepath.Join(dir, "everything.log")))(t)
	t.Cleanup(p.Kill)
	for name, text := range map[string]string{
		"files":  "name: files\nkind: mcp\napproval: never\ncommand: " + node + "\nargs: ['" + serverProgram(t, "server-filesystem") + "', '" + shared + "']\n",
		"stdio":  "name: stdio\nkind: mcp\napproval: never\ncommand: " + node + "\nargs: ['" + serverProgram(t, "server-everything") + "']\n",
		"remote": "name: remote\nkind: mcp\napproval: never\nurl: http://" + addr + "/mcp\nprivate_hosts: [" + host + "]\n",
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, "tools", name+".yaml"), []byte(text), 0o600))
	}
	model := apptest.NewProvider(t, provider.Options{Record: true, Calls: provider.CallNamed})
	must.Do(t, os.WriteFile(filepath.Join(dir, "agents", "caller.yaml"), []byte("name: caller\nsystem_prompt: You call tools.\ntools: [files, stdio, remote]\n"), 0o600))
	must.Do(t, os.WriteFile(filepath.Join(dir, "bobbin.yaml"), []byte("default_llm: large\nmodels:\n"+
		"  - {name: large, provider: openai, base_url: '"+model.URL+"', api_key_env: HOME, context_window: 100000, max_output_tokens: 1000}\n"), 0o600))
	program := must.Get(os.Executable())(t)
	bobbin := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program, append(args, "--config", "bobbin.yaml")...)
		cmd.Dir, cmd.Stderr = dir, t.Output()
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, serveVariable + "=1", "BOBBIN_TOOLS_ALLOW=mcp"}
		out, err := cmd.Output()
		return string(out), err
	}
	process.Await(t, "the server over HTTP", func() bool {
		out, err := bobbin("mcp", "list")
		return err == nil && strings.Contains(out, "remote__echo")
	})
	calls := []struct{ server, tool, arguments, want string }{
		{"files", "read_text_file", `{"path": "` + filepath.Join(shared, "notes.txt") + `"}`, "the bobbin is blue"},
		{"files", "list_directory", `{"path": "` + shared + `"}`, "notes.txt"},
		{"stdio", "get-sum", `{"a": 2, "b": 3}`, "5"},
		{"stdio", "echo", `{"message": "grüße"}`, "grüße"},
		{"remote", "get-sum", `{"a": 20, "b": 3}`, "23"},
	}
	if os.Getenv("BOBBIN_TEST_LONG") == "" { // each starts Bobbin and the server
		calls = []struct{ server, tool, arguments, want string }{calls[0], calls[4]}
	}
	call := func(tool, arguments string) string {
		out, err := bobbin("ask", "--agent", "caller", "call "+tool+" "+arguments)
		received := model.Received()
		must.True(t, err == nil && len(received) != 0, "%s: got %q, %v, %d requests", tool, out, err, len(received))
		messages := received[len(received)-1].Messages
		return messages[len(messages)-1].Text
	}
	for _, tt := range calls {
		compare.Contains(t, fmt.Sprintf("%s %s", tt.server, tt.tool), tt.want, call(tt.server+"__"+tt.tool, tt.arguments))
	}
	if got := call("files__read_text_file", `{"path": "/etc/passwd"}`); !strings.Contains(got, "denied") || strings.Contains(got, "root:") {
		t.Errorf("got %q for a file outside of the folder, want an error", got)
	}
}

// mcpOperation is something that a host does.
type mcpOperation struct {
	name string
	run  func(t *testing.T, u *mcpUser)
}

func mcpOperations() []mcpOperation {
	return []mcpOperation{
		{"connect", mcpConnect},
		{"tools: list, schemas, annotations", mcpListTools},
		{"send_message, a conversation", mcpConversation},
		{"a long answer, whole", mcpLongAnswer},
		{"progress while a run is waited for", mcpProgress},
		{"a call that times out, its run goes on", mcpTimeout},
		{"resources: list, templates, read", mcpResources},
		{"errors: arguments, unknown tool, unknown resource", mcpErrors},
		{"100 calls at once", mcpHundred},
	}
}

func mcpConnect(t *testing.T, u *mcpUser) {
	got := get[struct {
		Server                 struct{ Name string }
		Instructions, Revision string
	}](t, u, "connect", nil)
	if got.Server.Name != "bobbin" || !strings.Contains(got.Instructions, "wait_for_run") || got.Revision != u.kind.revision {
		t.Errorf("got %+v, want bobbin with revision %s", got, u.kind.revision)
	}
}

func mcpListTools(t *testing.T, u *mcpUser) {
	got := get[struct {
		Tools []struct {
			Name, Title, Description  string
			InputSchema, OutputSchema struct {
				Type                 string
				AdditionalProperties any
			}
			Annotations struct{ ReadOnlyHint, DestructiveHint *bool }
		}
	}](t, u, "listTools", nil)
	wantEqual(t, "tools", len(got.Tools), 12)
	for _, tool := range got.Tools {
		if tool.Title == "" || tool.Description == "" || tool.InputSchema.Type != "object" || tool.OutputSchema.Type != "object" || tool.Annotations.ReadOnlyHint == nil || tool.Annotations.DestructiveHint == nil {
			t.Errorf("got the tool %+v, want it described", tool)
		}
	}
}

// say sends a message that is answered.
func (u *mcpUser) say(t *testing.T, content string, more object) mcpRun {
	t.Helper()
	arguments := object{"content": content + " (" + u.mark + ")", "wait_seconds": 100}
	for name, value := range more {
		arguments[name] = value
	}
	return use[mcpRun](t, u, "send_message", arguments)
}

func mcpConversation(t *testing.T, u *mcpUser) {
	first := u.say(t, "the bees of the garden", nil)
	second := u.say(t, "and the wasps", object{"session_id": first.SessionID})
	if first.Status != core.RunSucceeded || !strings.Contains(first.Answer, "bees") || second.SessionID != first.SessionID || !strings.Contains(second.Answer, "wasps") {
		t.Errorf("got %+v and %+v, want both answered in a session", first, second)
	}
	wantEqual(t, "answer afterwards", use[mcpRun](t, u, "wait_for_run", object{"run_id": first.RunID}).Answer, first.Answer)
}

func mcpLongAnswer(t *testing.T, u *mcpUser) {
	got := u.say(t, "speak at length", nil)
	compare.Contains(t, "answer", say("speak at length ("+u.mark+")"), got.Answer)
}

// hold begins a run whose answer is held.
func (u *mcpUser) hold(t *testing.T, mark string) (mcpRun, *gate) {
	t.Helper()
	held := u.gates.add(t, mark+" ("+u.mark)
	run := u.say(t, mark, object{"wait_seconds": 0})
	<-held.asked
	return run, held
}

func mcpProgress(t *testing.T, u *mcpUser) {
	run, held := u.hold(t, "progress please")
	out := u.do(t, "callTool", object{"name": "wait_for_run", "progress": true, "arguments": object{"run_id": run.RunID, "wait_seconds": 1}})
	compare.True(t, out.fault == nil && len(out.events) != 0, "got %d notifications, %s, want some", len(out.events), out.fault)
	held.release()
	wantEqual(t, "status", use[mcpRun](t, u, "wait_for_run", object{"run_id": run.RunID}).Status, core.RunSucceeded)
}

func mcpTimeout(t *testing.T, u *mcpUser) {
	run, held := u.hold(t, "hold on")
	out := u.do(t, "callTool", object{"name": "wait_for_run", "timeout": 300, "arguments": object{"run_id": run.RunID, "wait_seconds": 100}})
	compare.True(t, out.fault != nil, "got %s, want an error", out.result)
	wantEqual(t, "status", use[mcpRun](t, u, "wait_for_run", object{"run_id": run.RunID, "wait_seconds": 0}).Status, core.RunRunning)
	held.release()
	wantEqual(t, "status", use[mcpRun](t, u, "wait_for_run", object{"run_id": run.RunID}).Status, core.RunSucceeded)
}

func mcpResources(t *testing.T, u *mcpUser) {
	run := u.say(t, "resources", nil)
	uri := "bobbin://sessions/" + run.SessionID + "/context"
	found := false
	for _, r := range get[struct{ Resources []struct{ URI string } }](t, u, "listResources", nil).Resources {
		found = found || r.URI == uri
	}
	wantEqual(t, "listed", found, true)
	wantEqual(t, "templates", len(get[struct{ ResourceTemplates []any }](t, u, "listResourceTemplates", nil).ResourceTemplates), 3)
	read := get[struct{ Contents []struct{ Text string } }](t, u, "readResource", object{"uri": uri})
	compare.True(t, len(read.Contents) == 1 && strings.Contains(read.Contents[0].Text, `"window":100000`), "got %+v, want the report", read)
}

func mcpErrors(t *testing.T, u *mcpUser) {
	u.wantFailure(t, "contents is not a known field (did you mean content?)", "send_message", object{"contents": "x"})
	u.wantFailure(t, "does not exist; the agents are", "send_message", object{"content": "x", "agent": "nobody"})
	if out := u.do(t, "callTool", object{"name": "drop_tables", "arguments": object{}}); out.fault == nil || !strings.Contains(out.fault.Message, "unknown tool") {
		t.Errorf("got %s, %s, want an unknown tool", out.result, out.fault)
	}
	if out := u.do(t, "readResource", object{"uri": "bobbin://sessions/none/context"}); out.fault == nil || !strings.Contains(out.fault.Message, "not found") {
		t.Errorf("got %s, %s, want it not found", out.result, out.fault)
	}
}

func mcpHundred(t *testing.T, u *mcpUser) {
	answers := make(chan *fault, 100)
	for range 100 {
		go func() {
			answers <- u.do(t, "callTool", object{"name": "list_sessions", "arguments": object{"limit": 1}}).fault
		}()
	}
	for range 100 {
		if f := <-answers; f != nil {
			t.Error(f)
		}
	}
}
