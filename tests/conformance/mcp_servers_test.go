package conformance_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/tests/process"
)

// serverProgram returns the program of an MCP server of npm.
func serverProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("node_modules/@modelcontextprotocol/" + name + "/dist/index.js")
	must(t, err)
	return path
}

// The MCP servers of npm are usable as tools, over standard input and output and over HTTP.
func TestMCPServers(t *testing.T) {
	t.Parallel()
	node, dir := process.FindNodeClients(t), den.Temp(t)
	must(t, os.Mkdir(filepath.Join(dir, "tools"), 0o700))
	must(t, os.Mkdir(filepath.Join(dir, "agents"), 0o700))
	shared := filepath.Join(dir, "shared")
	must(t, os.Mkdir(shared, 0o700))
	must(t, os.WriteFile(filepath.Join(shared, "notes.txt"), []byte("the bobbin is blue"), 0o600))
	addr := process.FreeAddress(t)
	host, port, err := net.SplitHostPort(addr)
	must(t, err)
	// The server takes a port and listens on every host.
	listen := `data:text/javascript,import {Server} from "node:net"; const {listen} = Server.prototype;` +
		`Server.prototype.listen = function(port, ...more) { return listen.call(this, port, "` + host + `", ...more); }`
	overHTTP := exec.Command(node, "--import", listen, serverProgram(t, "server-everything"), "streamableHttp")
	overHTTP.Dir, overHTTP.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "PORT=" + port}
	p, err := den.Start(overHTTP, filepath.Join(dir, "everything.log"))
	must(t, err)
	t.Cleanup(p.Kill)
	for name, text := range map[string]string{
		"files":  "name: files\nkind: mcp\ncommand: " + node + "\nargs: ['" + serverProgram(t, "server-filesystem") + "', '" + shared + "']\n",
		"stdio":  "name: stdio\nkind: mcp\ncommand: " + node + "\nargs: ['" + serverProgram(t, "server-everything") + "']\n",
		"remote": "name: remote\nkind: mcp\nurl: http://" + addr + "/mcp\nprivate_hosts: [" + host + "]\n",
	} {
		must(t, os.WriteFile(filepath.Join(dir, "tools", name+".yaml"), []byte(text), 0o600))
	}
	program, err := os.Executable()
	must(t, err)
	bobbin := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program, append([]string{"mcp"}, args...)...)
		cmd.Dir, cmd.Stderr = dir, t.Output()
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, serveVariable + "=1", "BOBBIN_TOOLS_ALLOW=mcp"}
		out, err := cmd.Output()
		return string(out), err
	}
	poll(t, "the server over HTTP", func() bool {
		out, err := bobbin("list", "remote")
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
	for _, tt := range calls {
		if out, err := bobbin("call", tt.server, tt.tool, tt.arguments); err != nil || !strings.Contains(out, tt.want) {
			t.Errorf("%s %s: got %q, %v, want %q", tt.server, tt.tool, out, err, tt.want)
		}
	}
	if out, err := bobbin("call", "files", "read_text_file", `{"path": "/etc/passwd"}`); err == nil || strings.Contains(out, "root:") {
		t.Errorf("got %q for a file outside of the folder, want an error", out)
	}
}
