// Package conformance_test lets the clients that people use, at the versions of the lock files,
// talk to a Bobbin in a process of its own.
package conformance_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/api/ops"
	apiclient "bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
)

// patience is how long the tests wait for what takes a moment.
const patience = 2 * time.Minute

// client is a client package at work in a process: it makes the calls that tests write. Safe for
// concurrent use.
type client struct {
	clientKind

	in io.Writer

	mu      sync.Mutex
	last    int                    // guarded by mu
	waiting map[string]chan answer // by the call; guarded by mu
}

// clientKind is a client package.
type clientKind struct {
	name, script string
	python       bool
	chatOnly     bool // it has chat completions and nothing else
}

// allClientKinds returns the clients, at the versions of the lock files.
func allClientKinds() []clientKind {
	return []clientKind{
		{name: "openai 7.57 (Node)", script: "client.mjs"},
		{name: "openai 3.54 (Python)", script: "client.py", python: true},
		{name: "LangChain's ChatOpenAI 1.7 (Python)", script: "chatopenai.py", python: true, chatOnly: true},
	}
}

// clientKinds returns the clients that run. Those of Python are for the long form: with them the
// scenarios take four times as long.
func clientKinds() []clientKind {
	kinds := allClientKinds()
	if os.Getenv("BOBBIN_TEST_LONG") == "" {
		return kinds[:1]
	}
	return kinds
}

// call is a call of a method of a client.
type call struct {
	ID      string            `json:"id"`
	Method  string            `json:"method"` // responses.create
	Args    []any             `json:"args,omitempty"`
	Params  map[string]any    `json:"params,omitempty"`
	URL     string            `json:"url"`
	Key     string            `json:"key"`
	Headers map[string]string `json:"headers,omitempty"`
	All     bool              `json:"all,omitempty"`   // all pages of a list
	Until   string            `json:"until,omitempty"` // the connection ends after an event with this text

	Revision string `json:"revision,omitempty"` // of MCP
}

// answer is a line of a client: an event, a result or an error.
type answer struct {
	ID     string          `json:"id"`
	Event  json.RawMessage `json:"event"`
	Result json.RawMessage `json:"result"`
	Error  *fault          `json:"error"`
}

// fault is an error as the client throws it.
type fault struct {
	Class   string `json:"class"`
	Message string `json:"message"`
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Param   string `json:"param"`
	Type    string `json:"type"`
}

// startClient starts a client of the package.
func startClient(t *testing.T, kind clientKind) *client {
	t.Helper()
	program := process.FindNodeClients(t)
	if kind.python {
		program = process.FindPythonClients(t)
	}
	cmd := exec.CommandContext(t.Context(), program, kind.script)
	cmd.Stderr = t.Output()
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // killed with the test's context if it does not end by itself
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 32<<20)
	if !lines.Scan() {
		t.Fatalf("%s has ended: %v", kind.script, lines.Err())
	}
	c := &client{clientKind: kind, in: in, waiting: map[string]chan answer{}}
	go c.read(lines) // ends with the script
	return c
}

func (c *client) read(lines *bufio.Scanner) {
	for lines.Scan() {
		var line answer
		_ = json.Unmarshal(lines.Bytes(), &line) // a line without an id belongs to no call
		c.mu.Lock()
		waits := c.waiting[line.ID]
		if line.Event == nil {
			delete(c.waiting, line.ID)
		}
		c.mu.Unlock()
		if waits != nil {
			waits <- line
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, waits := range c.waiting {
		waits <- answer{Error: &fault{Class: "ended", Message: "the client has ended"}}
	}
}

// begin makes the call. The last answer has no event.
func (c *client) begin(t *testing.T, made call) <-chan answer {
	t.Helper()
	answers := make(chan answer, 100_000)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	made.ID = strconv.Itoa(c.last)
	c.waiting[made.ID] = answers
	line, err := json.Marshal(made)
	must.Do(t, err)
	_, err = c.in.Write(append(line, '\n'))
	must.Do(t, err)
	return answers
}

// outcome is how a call ended.
type outcome struct {
	events []json.RawMessage
	result json.RawMessage
	fault  *fault
}

// await returns how a call ends.
func await(t *testing.T, answers <-chan answer) outcome {
	t.Helper()
	var out outcome
	limit := time.After(patience)
	for {
		select {
		case line := <-answers:
			if line.Event != nil {
				out.events = append(out.events, line.Event)
				continue
			}
			out.result, out.fault = line.Result, line.Error
			return out
		case <-limit:
			t.Fatal("the client has not answered")
		}
	}
}

// decode returns the JSON as a T.
func decode[T any](t *testing.T, raw json.RawMessage) T {
	t.Helper()
	var into T
	if err := json.Unmarshal(raw, &into); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return into
}

// String returns the error for a test's log.
func (f *fault) String() string {
	if f == nil {
		return "no error"
	}
	return fmt.Sprintf("%s %d %s (param %q, type %q): %s", f.Class, f.Status, f.Code, f.Param, f.Type, f.Message)
}

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
				compare.True(t, err == nil && strings.Contains(string(out), want), "got %q, %v, want %q", out, err, want)
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
	must.True(t, len(lines) == 3 && strings.HasPrefix(lines[1], "bobbin serve "), "got %q, want three commands, the second one the server", lines)
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
		must.True(t, err == nil, "%s: %v", line, err)
		return string(out)
	}
	shell(lines[0])
	addr := serveDemo(t, dir, strings.Fields(lines[1])[2:]...)
	process.Await(t, "the MCP server's start", func() bool {
		log, err := os.ReadFile(filepath.Join(dir, "log"))
		return err == nil && strings.Contains(string(log), "mcp server connected")
	})
	compare.Contains(t, "the sum that the MCP server calculates", "The sum of 2 and 3 is 5.", shell(strings.ReplaceAll(lines[2], "localhost:8080", addr)))
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
	process.Await(t, "Bobbin's start", func() bool {
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
