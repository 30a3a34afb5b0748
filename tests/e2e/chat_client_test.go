package e2e_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// maxClientLines is how long the example of a web chat may be.
const maxClientLines = 100

// The web chat of docs/examples, in Node, shows what the log has: after a stream, a stop
// with a queue behind it, an edit in place, an approval, and a restart of the server in mid-answer.
func TestChatClient(t *testing.T) {
	t.Parallel()
	node := process.FindNode(t)
	dir := compileChat(t)
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		h, gates := newChatHouse(t, url)
		id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "careful"})
		chat := openChat(t, node, dir, h.URL, id)

		chat.send("Grüße 👋🏽 to you")
		chat.wait(wish{Status: "idle", Whole: 2, Said: "Grüße 👋🏽 to you"})
		must.Get(client.Call(t.Context(), h, ops.EditMessage, ops.EditedMessage{NewMessage: ops.NewMessage{InSession: ops.InSession{SessionID: id}, Content: "Grüße to all", Run: new(false)}, MessageID: chat.messages[0].ID}))(t) // compared below

		chat.send("first hold please, until it is stopped")
		chat.wait(wish{Status: "running", Shown: 4}) // the question and what there is of its answer
		chat.send("second in the queue")
		chat.wait(wish{Shown: 5})
		chat.do(wish{Do: "stop"})
		chat.wait(wish{Status: "idle", Whole: 6, Said: "answer to: second in the queue"})

		chat.send("calculator")
		chat.wait(wish{Status: "waiting", Asked: 1})
		chat.do(wish{Do: "approve"})
		chat.wait(wish{Status: "idle", Whole: 10})

		chat.send("second hold please, over a restart of the server")
		chat.wait(wish{Status: "running", Shown: 12})
		h.Stop()
		gates.open()
		h.Start()
		chat.wait(wish{Status: "idle", Whole: 12, Said: "over a restart of the server"})

		want := apptest.ListMessages(t, h.Client, id)
		seen := cmpopts.IgnoreFields(core.Message{}, "Branch")
		compare.Equal(t, "the chat shows something else than the log", want, chat.messages, seen, cmpopts.EquateEmpty())
	})
}

// newChatHouse starts a Bobbin on an address that it keeps over a restart. Its provider
// stops in the middle of answers to messages with "hold", and calls the calculator when a
// message names it.
func newChatHouse(t *testing.T, url string) (*apptest.Bobbin, *gate) {
	t.Helper()
	g := &gate{arrived: make(chan string, 100), opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	p := apptest.NewProvider(t, provider.Options{Hold: g.hold, Calls: func(r provider.Received) []provider.Call {
		if last := r.Messages[len(r.Messages)-1]; last.Role == "user" && last.Text == "calculator" {
			return []provider.Call{{ID: "call_1", Name: "calculator", Arguments: `{"expression": "6*7"}`}}
		}
		return nil
	}})
	t.Cleanup(g.open)
	h := apptest.New(t, url, apptest.WithModel("house", 32_000, 2048, p), func(c *config.Config) { c.Limits.ShutdownGrace = 100 * time.Millisecond },
		apptest.WithAgent("careful", "name: careful\nsystem_prompt: You ask before you act.\ntools: [calculator]\ntool_settings:\n  calculator: {approval: always}\n"))
	h.Config.Addr = strings.TrimPrefix(h.URL, "http://")
	return h, g
}

// compileChat takes the types out of the example and its driver, and returns their folder.
func compileChat(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, from := range map[string]string{"chat.mjs": "../../docs/examples/chat.ts", "driver.mjs": "testdata/driver.ts"} {
		source := must.Get(os.ReadFile(from))(t)
		if lines := strings.Count(string(source), "\n"); lines > maxClientLines {
			t.Errorf("%s has %d lines, want at most %d", from, lines, maxClientLines)
		}
		out := api.Transform(string(source), api.TransformOptions{Loader: api.LoaderTS, Format: api.FormatESModule, Target: api.ES2022})
		must.True(t, len(out.Errors) == 0, "%s: %v", from, out.Errors)
		must.Do(t, os.WriteFile(filepath.Join(dir, name), out.Code, 0o600))
	}
	return dir
}

// wish is a line to the driver.
type wish struct {
	Do     string `json:"do"`
	Text   string `json:"text,omitempty"`
	Status string `json:"status,omitempty"`
	Said   string `json:"said,omitempty"`  // a part of an answer
	Whole  int    `json:"whole,omitempty"` // messages, all of them in the log
	Shown  int    `json:"shown,omitempty"` // messages
	Asked  int    `json:"asked,omitempty"` // open questions
}

// chatClient is the example at work.
type chatClient struct {
	t        *testing.T
	in       io.Writer
	out      *bufio.Reader
	messages []core.Message // as it showed them last
}

// openChat starts the example in Node.
func openChat(t *testing.T, node, dir, url string, id core.SessionID) *chatClient {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(dir, "driver.mjs"), url+"/api/v1", string(id))
	cmd.Stderr = t.Output()
	in := must.Get(cmd.StdinPipe())(t)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must.Do(t, err)
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // killed with the test's context if it does not end by itself
	})
	return &chatClient{t: t, in: in, out: bufio.NewReader(out)}
}

func (c *chatClient) send(text string) { c.t.Helper(); c.do(wish{Do: "send", Text: text}) }

// wait returns when the chat shows what the wish says.
func (c *chatClient) wait(w wish) { c.t.Helper(); w.Do = "await"; c.do(w) }

// do has the driver fulfill a wish.
func (c *chatClient) do(w wish) {
	c.t.Helper()
	must.Do(c.t, json.NewEncoder(c.in).Encode(w))
	line, err := c.out.ReadBytes('\n')
	var state struct {
		Messages []core.Message `json:"messages"`
	}
	if err == nil {
		err = json.Unmarshal(line, &state)
	}
	must.True(c.t, err == nil, "%+v: %v", w, err)
	c.messages = state.Messages
}
