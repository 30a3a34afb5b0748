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
	"strconv"
	"sync"
	"testing"
	"time"

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
