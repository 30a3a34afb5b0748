package conformance_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// serverProgram returns the program of an MCP server of npm.
func serverProgram(t *testing.T, name string) string {
	t.Helper()
	path := must.Get(filepath.Abs("node_modules/@modelcontextprotocol/" + name + "/dist/index.js"))(t)
	return path
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
	model := newProvider(t, provider.Options{Record: true, Calls: callAsAsked})
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
	poll(t, "the server over HTTP", func() bool {
		out, err := bobbin("mcp", "list", "remote")
		return err == nil && strings.Contains(out, "echo")
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
		out, err := bobbin("ask", "--agent", "caller", tool+" "+arguments)
		received := model.Received()
		if err != nil || len(received) == 0 {
			t.Fatalf("%s: got %q, %v, %d requests", tool, out, err, len(received))
		}
		messages := received[len(received)-1].Messages
		return messages[len(messages)-1].Text
	}
	for _, tt := range calls {
		if got := call(tt.server+"__"+tt.tool, tt.arguments); !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: got %q, want %q", tt.server, tt.tool, got, tt.want)
		}
	}
	if got := call("files__read_text_file", `{"path": "/etc/passwd"}`); !strings.Contains(got, "denied") || strings.Contains(got, "root:") {
		t.Errorf("got %q for a file outside of the folder, want an error", got)
	}
}

// callAsAsked calls the tool that the question names, with its arguments, once.
func callAsAsked(r provider.Received) []provider.Call {
	name, arguments, _ := strings.Cut(r.Messages[len(r.Messages)-1].Text, " ")
	if r.Messages[len(r.Messages)-1].Role != "user" {
		return nil
	}
	return []provider.Call{{ID: "call_1", Name: name, Arguments: arguments}}
}
