package slackclients_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bobbin/app/cli"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/process"
	"bobbin/tests/provider"
	"bobbin/tests/slackfake/fakeslack"
)

// serveVariable makes the test program a Bobbin.
const serveVariable = "BOBBIN_SLACKCLIENTS_SERVE"

// patience is how long the tests wait for what takes a moment.
const patience = 2 * time.Minute

// den holds the files and processes of the tests.
var den *process.Den

// TestMain runs the tests, or Bobbin in a process that a test started: no second program has to
// be built.
func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		code := cli.Main(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
		stop()
		os.Exit(code)
	}
	var err error
	if den, err = process.Open("slackclients"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	den.Close()
	os.Exit(code)
}

// bobbin is a Bobbin in a process of its own, installed in a workspace of the fake Slack whose
// people are Slack's own client.
type bobbin struct {
	*world
	*client.Client

	people   *people
	gates    *gates
	clock    *clock
	bob      *fakeslack.User
	database string
	dir      string
	addr     string
	socket   bool // Socket Mode
	now      *process.Process
}

// newBobbin starts Slack, the people, a model and a Bobbin.
func newBobbin(t *testing.T, database string, socket bool) *bobbin {
	t.Helper()
	b := &bobbin{gates: &gates{closed: map[string]*gate{}}, clock: &clock{}, dir: den.Temp(t), database: database, socket: socket, addr: process.FreeAddress(t)}
	b.world = newWorld(t, fakeslack.Options{AckTimeout: 5 * time.Second, Now: b.clock.read,
		RetryDelays: []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}})
	b.bob = b.ws.AddUser("Bob", "bob@example.org")
	b.people = newPeople(t, b.world)
	b.configure(t, b.APIURL())
	b.SetURLs(fakeslack.URLsBelow("http://" + b.addr))
	b.start(t)
	return b
}

// configure starts a model, and writes the settings of a Bobbin that uses the Web API at the address.
func (b *bobbin) configure(t *testing.T, apiURL string) {
	t.Helper()
	model, err := provider.New(provider.Options{Say: longOrEcho, Pieces: 2, Hold: b.gates.hold})
	must(t, err)
	t.Cleanup(model.Close)
	must(t, os.MkdirAll(filepath.Join(b.dir, "agents"), 0o700))
	must(t, os.WriteFile(filepath.Join(b.dir, "agents", "careful.yaml"),
		[]byte("name: careful\nsystem_prompt: You answer.\ntools: [calculator]\ntool_settings:\n  calculator: {approval: always}\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(b.dir, "bobbin.yaml"), fmt.Appendf(nil, "default_llm: small\ntitles: false\nslack: {agent: careful, api_url: '%s'}\nmodels:\n  - name: small\n    provider: openai\n"+
		"    base_url: %s\n    api_key_env: PROVIDER_KEY\n    context_window: 100000\n    max_output_tokens: 20000\n", apiURL, model.URL), 0o600))
	b.Client, err = client.New(client.Options{URL: "http://" + b.addr})
	must(t, err)
	t.Cleanup(func() {
		b.now.Kill()
		if log, err := os.ReadFile(filepath.Join(b.dir, "log")); t.Failed() && err == nil {
			t.Logf("the end of Bobbin's log:\n%s", log[max(0, len(log)-6000):])
		}
	})
}

// start starts the process and waits until it takes requests, and has its socket.
func (b *bobbin) start(t *testing.T) {
	t.Helper()
	program, err := os.Executable()
	must(t, err)
	cmd := exec.Command(program, "serve", "--config", filepath.Join(b.dir, "bobbin.yaml"), "--data-dir", b.dir, "--agents-dir", filepath.Join(b.dir, "agents"), "--addr", b.addr, "--log-format", "text")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir, "TMPDIR=" + b.dir, "PROVIDER_KEY=none", serveVariable + "=1",
		"BOBBIN_DATABASE_URL=" + b.database, "BOBBIN_SLACK_BOT_TOKEN=" + b.token}
	if b.socket {
		cmd.Env = append(cmd.Env, "BOBBIN_SLACK_APP_TOKEN=xapp-1-A0001-1")
	} else {
		cmd.Env = append(cmd.Env, "BOBBIN_SLACK_SIGNING_SECRET=signing-secret")
	}
	b.now, err = den.Start(cmd, filepath.Join(b.dir, "log"))
	must(t, err)
	poll(t, "Bobbin's start", func() bool {
		select {
		case <-b.now.Exited:
			t.Fatalf("Bobbin ended at its start: %s", b.now.Cmd.ProcessState)
		default:
		}
		_, err := b.Version(t.Context())
		return err == nil
	})
	if b.socket {
		b.await(t, "the socket", func() bool { return b.Sockets() == 1 })
	}
}

// kill ends the process with SIGKILL. Slack notices that its socket has ended.
func (b *bobbin) kill(t *testing.T) {
	t.Helper()
	b.now.Kill()
	b.await(t, "the end of the socket", func() bool { return b.Sockets() == 0 })
}

// await waits until the condition holds in Slack.
func (w *world) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.Wait(ctx, holds); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// poll waits until the condition holds.
func poll(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !holds(); {
		if time.Now().After(limit) {
			t.Fatalf("%s: not within %s", what, patience)
		}
		process.Pause(t.Context(), 100*time.Millisecond)
	}
}

// people are the users of a workspace, who use @slack/web-api. Safe for concurrent use.
type people struct {
	in io.Writer

	mu      sync.Mutex
	last    int                               // guarded by mu
	waiting map[string]chan<- json.RawMessage // by the call; guarded by mu
}

// newPeople starts the client.
func newPeople(t *testing.T, w *world) *people {
	t.Helper()
	s := w.start(t, "people.mjs")
	s.out.Buffer(nil, 8<<20)
	if line := s.read(); line["ready"] != true {
		t.Fatalf("got %v, want that the client is ready", line)
	}
	p := &people{in: s.in, waiting: map[string]chan<- json.RawMessage{}}
	go func() { // ends with the script
		for s.out.Scan() {
			var answer struct{ ID string }
			raw := append(json.RawMessage(nil), s.out.Bytes()...)
			_ = json.Unmarshal(raw, &answer) // a line without an id belongs to no call
			p.mu.Lock()
			if waits := p.waiting[answer.ID]; waits != nil {
				waits <- raw
			}
			delete(p.waiting, answer.ID)
			p.mu.Unlock()
		}
	}()
	return p
}

// called is what a method of the Web API answered.
type called struct {
	TS       string
	Error    string
	Messages []fakeslack.Message
}

// call calls a method as the user, and fails the test if Slack refuses it.
func (p *people) call(t *testing.T, as *fakeslack.User, method string, args map[string]any) called {
	t.Helper()
	answer := make(chan json.RawMessage, 1)
	p.mu.Lock()
	p.last++
	id := fmt.Sprint(p.last)
	p.waiting[id] = answer
	line, err := json.Marshal(map[string]any{"id": id, "token": as.Token(), "method": method, "args": args})
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	p.mu.Unlock()
	must(t, err)
	var got called
	select {
	case raw := <-answer:
		must(t, json.Unmarshal(raw, &got))
	case <-time.After(patience):
		t.Fatalf("%s: no answer of the client", method)
	}
	if got.Error != "" {
		t.Fatalf("%s: %s", method, got.Error)
	}
	return got
}

// gates hold answers of the model to questions with certain marks.
type gates struct {
	mu     sync.Mutex
	closed map[string]*gate // guarded by mu
}

// gate is closed until the test opens it.
type gate struct {
	piece       int // before which the answer waits: 1, 2
	asked, open chan struct{}
}

func (g *gates) add(mark string, piece int) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed[mark] = &gate{piece, make(chan struct{}), make(chan struct{})}
	return g.closed[mark]
}

// hold waits if the piece of the answer to the question has a gate.
func (g *gates) hold(question string) {
	var found *gate
	g.mu.Lock()
	for mark, one := range g.closed {
		if strings.Contains(question, mark) {
			if one.piece--; one.piece == 0 {
				found = one
				delete(g.closed, mark)
			}
		}
	}
	g.mu.Unlock()
	if found != nil {
		close(found.asked)
		<-found.open
	}
}

// clock is Slack's time, which tests move on.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration // guarded by mu
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// longLines is how many lines of code a long answer has.
const longLines = 700

// longOrEcho is what the model says: the question without its speaker, or a long answer if it
// asks for one.
func longOrEcho(question string) string {
	if !strings.Contains(question, "at length") {
		if _, said, ok := strings.Cut(question, "]\n"); ok && strings.HasPrefix(question, "[from user ") {
			return said
		}
		return question
	}
	var b strings.Builder
	b.WriteString("\n\n```go\n")
	for i := range longLines {
		fmt.Fprintf(&b, "line %d of the code, with | and <!here>\n", i)
	}
	b.WriteString("```\n\n| a | b |\n|---|---|\n")
	for i := range longLines / 2 {
		fmt.Fprintf(&b, "| row %d | x |\n", i)
	}
	return b.String() + "\nThe end."
}

// webMessage is a message of Bob on the web.
func webMessage(session core.SessionID, text string) core.SendMessage {
	return core.SendMessage{SessionID: session, Content: text, Source: core.SourceWeb, Author: "Bob"}
}

// status returns the status of a request to Bobbin.
func (r rawRequest) status(t *testing.T, base string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+r.path, strings.NewReader(r.body))
	must(t, err)
	for name, value := range r.header {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// rawRequest is a request to the request URLs of an app.
type rawRequest struct {
	path, body string
	header     map[string]string
}
