package conformance_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	apiclient "bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
)

// runFramework runs a program that uses Bobbin by a framework, and returns what it has seen.
func runFramework(t *testing.T, program string, args ...string) map[string]json.RawMessage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stderr = t.Output()
	out := must.Get(cmd.Output())(t)
	return decode[map[string]json.RawMessage](t, out)
}

// wantSeen compares what the program has seen, as JSON.
func wantSeen(t *testing.T, seen map[string]json.RawMessage, want map[string]string) {
	t.Helper()
	for name, value := range want {
		wantEqual(t, name, string(seen[name]), value)
	}
}

// The AI SDK works with its default provider, which speaks Responses and refers to what it got; a
// conversation is one session.
func TestAISDK(t *testing.T) {
	t.Parallel()
	node := process.FindNodeClients(t)
	b := newBobbin(t, dbtest.MigratedSQLiteURL(t))
	for _, version := range []string{"5", "6"} {
		seen := runFramework(t, node, "aisdk.mjs", version, b.front.url, aliceKey)
		mark := "of the AI SDK " + version
		wantSeen(t, seen, map[string]string{
			"loop":   `["answer to: the weather twice, ` + mark + `",3]`,
			"turn":   `"answer to: And the third, ` + mark + `"`,
			"stream": `"answer to: hello, ` + mark + `"`,
			"object": `{"city":"Bonn","people":340000}`,
			"forced": `["get_weather"]`,

			"forced steps chat":      `["tool-calls","tool-calls"]`,
			"forced steps responses": `["tool-calls","tool-calls"]`,
		})
		if failure := string(seen["failure"]); failure == `"none"` || strings.Contains(failure, "Invalid JSON") {
			t.Errorf("a failure reads %s", failure)
		}
		id := decode[core.SessionID](t, seen["session"])
		if got := decode[[]core.SessionID](t, seen["sessions"]); got[1] != id || got[2] != id {
			t.Errorf("the turns were in the sessions %v", got)
		}
		page := must.Get(apiclient.Call(t.Context(), b, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: id}}))(t)
		wantEqual(t, "messages of the conversation", len(page.Items), 6)
	}
	list := must.Get(apiclient.Call(t.Context(), b, ops.ListSessions, core.SessionQuery{}))(t)
	wantEqual(t, "listed sessions: the conversation of each version", len(list.Items), 2)
}

// pydantic-ai's output_type and the Agents SDK's tool_choice require a call of their own tools; the
// agent's tool, which they do not see, may come first.
func TestPythonFrameworks(t *testing.T) {
	t.Parallel()
	python := process.FindPythonClients(t)
	b := newBobbin(t, dbtest.MigratedSQLiteURL(t))
	seen := runFramework(t, python, "frameworks.py", b.front.url, aliceKey)
	bonn := `{"city": "Bonn", "people": 340000}`
	wantSeen(t, seen, map[string]string{
		"output_type chat": bonn, "output_type again chat": bonn, "output_type responses": bonn, "output_type again responses": bonn,
		"output_type and a tool chat": bonn, "output_type and a tool responses": bonn,
		"agents chat":      `[["get_weather"], "answer to: use a tool and the weather of the Agents SDK, chat"]`,
		"agents responses": `[["get_weather"], "answer to: use a tool and the weather of the Agents SDK, responses"]`,
	})
}

// What docs/CLIENTS.md shows in Node and Python works as it stands against the demonstration model.
func TestClientsPage(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile("../../docs/CLIENTS.md"))(t)
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
	text := must.Get(os.ReadFile("../../docs/CLIENTS.md"))(t)
	lines := strings.Split(strings.TrimSpace(block(t, string(text), "shell", "server-everything")), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "bobbin serve ") {
		t.Fatalf("got %q, want three commands, the second one the server", lines)
	}
	dir := den.Temp(t)
	modules := must.Get(filepath.Abs("node_modules"))(t)
	must.Do(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	programs := filepath.Join(dir, "programs")
	must.Do(t, os.Mkdir(programs, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(programs, "npm"), []byte("#!/bin/sh\n"), 0o700)) //nolint:gosec // a program
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
	program := must.Get(os.Executable())(t)
	addr := process.FreeAddress(t)
	cmd := exec.Command(program, append([]string{"serve", "--addr", addr, "--data-dir", filepath.Join(dir, "data"), "--default-llm", "demo"}, args...)...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, serveVariable + "=1", "npm_config_offline=true"}
	p := must.Get(den.Start(cmd, filepath.Join(dir, "log")))(t)
	t.Cleanup(func() {
		p.Kill()
		if log, err := os.ReadFile(filepath.Join(dir, "log")); t.Failed() && err == nil {
			t.Logf("%s", log)
		}
	})
	c := must.Get(apiclient.New(apiclient.Options{URL: "http://" + addr}))(t)
	poll(t, "Bobbin's start", func() bool {
		select {
		case <-p.Exited:
			t.Fatalf("Bobbin ended at its start: %s", p.Cmd.ProcessState)
		default:
		}
		_, err := apiclient.Call(t.Context(), c, ops.ListAgents, struct{}{})
		return err == nil
	})
	return addr
}
