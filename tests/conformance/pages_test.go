package conformance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	native "bobbin/app/client"
	"bobbin/tests/process"
)

// What docs/CLIENTS.md shows in Node and Python works as it stands against the demonstration model.
func TestClientsPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/CLIENTS.md")
	must(t, err)
	addr := serveDemo(t, den.Temp(t))
	for name, tt := range map[string]struct {
		program  func(t testing.TB) string
		args     []string
		language string
		words    string
		want     []string
	}{
		"Node":      {process.FindNodeClients, []string{"--input-type=module", "-"}, "js", "node-example", []string{"391"}},
		"AI SDK":    {process.FindNodeClients, []string{"--input-type=module", "-"}, "js", "createOpenAI", []string{"391"}},
		"Python":    {process.FindPythonClients, []string{"-"}, "python", "python-example", []string{"391", "My name is Ann."}},
		"LangChain": {process.FindPythonClients, []string{"-"}, "python", "langchain-example", []string{"391"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			names := strings.NewReplacer("localhost:8080", addr, `"@ai-sdk/openai"`, `"ai6-openai"`, `from "ai"`, `from "ai6"`) // the lock file has two versions
			code := names.Replace(block(t, string(text), tt.language, tt.words))
			cmd := exec.CommandContext(t.Context(), tt.program(t), tt.args...)
			cmd.Stdin, cmd.Stderr = strings.NewReader(code), t.Output()
			out, err := cmd.Output()
			for _, want := range tt.want {
				if err != nil || !strings.Contains(string(out), want) {
					t.Errorf("got %q, %v, want %q", out, err, want)
				}
			}
		})
	}
}

// Three commands of docs/CLIENTS.md let an MCP server and OpenAI's client, both from npm, talk
// through Bobbin. What they would download is there: npm does nothing.
func TestClientsShell(t *testing.T) {
	t.Parallel()
	process.FindNodeClients(t)
	text, err := os.ReadFile("../../docs/CLIENTS.md")
	must(t, err)
	lines := strings.Split(strings.TrimSpace(block(t, string(text), "shell", "server-everything")), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "bobbin serve ") {
		t.Fatalf("got %q, want three commands, the second one the server", lines)
	}
	dir := den.Temp(t)
	modules, err := filepath.Abs("node_modules")
	must(t, err)
	must(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	programs := filepath.Join(dir, "programs")
	must(t, os.Mkdir(programs, 0o700))
	must(t, os.WriteFile(filepath.Join(programs, "npm"), []byte("#!/bin/sh\n"), 0o700)) //nolint:gosec // a program
	path := "PATH=" + programs + ":" + os.Getenv("PATH")
	shell := func(line string) string {
		cmd := exec.CommandContext(t.Context(), "bash", "-euc", line)
		cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), path), t.Output()
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return string(out)
	}
	shell(lines[0])
	addr := serveDemo(t, dir, strings.Fields(lines[1])[2:]...)
	poll(t, "the MCP server's start", func() bool {
		log, err := os.ReadFile(filepath.Join(dir, "log"))
		return err == nil && strings.Contains(string(log), "mcp server connected")
	})
	if got := shell(strings.ReplaceAll(lines[2], "localhost:8080", addr)); !strings.Contains(got, "The sum of 2 and 3 is 5.") {
		t.Errorf("got %q, want the sum that the MCP server calculates", got)
	}
}

// serveDemo starts Bobbin in the folder with the demonstration model, waits until it takes requests,
// and returns its address.
func serveDemo(t *testing.T, dir string, args ...string) string {
	t.Helper()
	program, err := os.Executable()
	must(t, err)
	addr := process.FreeAddress(t)
	cmd := exec.Command(program, append([]string{"serve", "--addr", addr, "--data-dir", filepath.Join(dir, "data"), "--default-llm", "demo"}, args...)...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, serveVariable + "=1", "npm_config_offline=true"}
	p, err := den.Start(cmd, filepath.Join(dir, "log"))
	must(t, err)
	t.Cleanup(func() {
		p.Kill()
		if log, err := os.ReadFile(filepath.Join(dir, "log")); t.Failed() && err == nil {
			t.Logf("%s", log)
		}
	})
	c, err := native.New(native.Options{URL: "http://" + addr})
	must(t, err)
	poll(t, "Bobbin's start", func() bool {
		select {
		case <-p.Exited:
			t.Fatalf("Bobbin ended at its start: %s", p.Cmd.ProcessState)
		default:
		}
		_, err := native.Call(t.Context(), c, ops.ListAgents, struct{}{})
		return err == nil
	})
	return addr
}
