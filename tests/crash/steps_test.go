package crash_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/datadir"
	"bobbin/app/db"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/mcptest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
	"bobbin/tests/seed"
)

// TestKilledInTheMiddleOfALargeWrite: a history is imported, a session is forked or
// removed, which takes many transactions, and the process is killed in between. Nobody
// ever sees a part of it, and what was written is gone soon after the restart.
func TestKilledInTheMiddleOfALargeWrite(t *testing.T) {
	t.Parallel()
	const n = 6000
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"role":"user","content":"message %d of a long history"}`+"\n", i)
	}
	eachPlace(t, func(t *testing.T, p place) {
		model := apptest.NewProvider(t, provider.Options{Window: modelWindow})
		b := newBobbin(t, p, model.URL)
		b.start(t)
		w := writer{t: t, b: b, lines: lines.String()}
		for _, busy := range []string{"import", "fork", "purge"} {
			session := must.Get(client.Call(t.Context(), w.operator(), ops.CreateSession, ops.NewSession{}))(t)
			before := 0
			if busy != "import" {
				before = n
				must.Do(t, w.write(t.Context(), "import", session.ID))
			}
			w.killDuring(busy, session.ID)
			w.check(busy, session.ID, before)
		}
		b.stop(t)
	})
}

// writer does what takes many transactions.
type writer struct {
	t     *testing.T
	b     *bobbin
	lines string
}

// operator returns a client with the token of the present process, which may remove
// sessions. Its connections do not wait for another process.
func (w writer) operator() *client.Client {
	w.t.Helper()
	s, ok := datadir.Running(w.b.Dir)
	if !ok {
		w.t.Fatal("bobbin has not announced itself")
	}
	return must.Get(client.New(client.Options{URL: s.URL, Key: s.Token, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}))(w.t)
}

// write imports into the session, forks it or removes it.
func (w writer) write(ctx context.Context, what string, id core.SessionID) (err error) {
	switch c := w.operator(); what {
	case "import":
		_, err = c.ImportMessages(ctx, core.ImportMessages{SessionID: id, Body: strings.NewReader(w.lines), Format: core.ImportLines})
	case "fork":
		_, err = client.Call(ctx, c, ops.ForkSession, core.ForkSession{SessionID: id})
	case "purge":
		_, err = client.Call(ctx, c, ops.Purge, core.Purge{IDs: []core.SessionID{id}})
	}
	return err
}

// killDuring begins the write, kills the process in the middle of it, and starts the
// next one.
func (w writer) killDuring(busy string, id core.SessionID) {
	w.t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.write(w.t.Context(), busy, id) // the process is killed
	}()
	d := w.b.place.open(w.t)
	for w.count(d, "SELECT COUNT(*) FROM sessions WHERE busy = ?", busy) == 0 {
		select {
		case <-ended:
			w.t.Fatalf("the %s ended before it was seen", busy)
		case <-time.After(time.Millisecond):
		}
	}
	must.Do(w.t, d.Close()) // the restart must find what a dead process left
	w.b.Kill()
	<-ended
	if busy != "import" { // whose process is known by its name; the leases of others end here
		d := w.b.place.open(w.t)
		must.Do(w.t, d.Gorm.Exec("UPDATE sessions SET busy_until = '2000-01-01 00:00:00+00:00' WHERE busy <> ''").Error)
		must.Do(w.t, d.Close())
	}
	w.b.start(w.t)
}

func (w writer) count(d *db.DB, query string, args ...any) (n int) {
	w.t.Helper()
	must.Do(w.t, d.Gorm.WithContext(w.t.Context()).Raw(query, args...).Scan(&n).Error)
	return n
}

// wait waits until the condition holds for no session.
func (w writer) wait(d *db.DB, what, condition string) {
	w.t.Helper()
	process.Await(w.t, what, func() bool { return w.count(d, "SELECT COUNT(*) FROM sessions WHERE "+condition) == 0 })
}

// check waits until nothing is busy any more, and looks at what is left.
func (w writer) check(busy string, id core.SessionID, before int) {
	w.t.Helper()
	d := w.b.place.open(w.t)
	defer func() { _ = d.Close() }()
	w.wait(d, "a killed "+busy+" is recovered", "busy <> ''")
	w.wait(d, "what is left after a killed "+busy+" is indexed", "indexed_seq < last_seq")
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	sessions := 1
	if busy == "purge" {
		sessions, before = 0, 0
	}
	for query, want := range map[string]int{
		"SELECT COUNT(*) FROM sessions":                                                 sessions,
		"SELECT COALESCE(SUM(message_count), 0) FROM sessions":                          before,
		"SELECT COUNT(*) FROM messages":                                                 before,
		"SELECT COUNT(*) FROM search_entries WHERE message_id IS NOT NULL":              before,
		"SELECT COUNT(*) FROM session_events WHERE type = 'messages.imported'":          min(before, 1),
		"SELECT COUNT(*) FROM session_events WHERE type <> 'messages.imported'":         0,
		"SELECT COUNT(*) FROM sessions WHERE last_seq <> message_count OR last_seq < 0": 0,
	} {
		compare.Equal(w.t, fmt.Sprintf("after a killed %s: %s", busy, query), want, w.count(d, query))
	}
	if busy == "purge" {
		return
	}
	if answer, err := apptest.SendAndWait(ctx, w.operator(), core.SendMessage{SessionID: id, Content: "Are you there?"}); err != nil || answer.Run.Status != core.RunSucceeded {
		w.t.Errorf("a message after a killed %s: %+v, %v", busy, answer.Run, err)
	}
	compare.Error(w.t, "purge", nil, compare.ErrorOf(client.Call(ctx, w.operator(), ops.Purge, core.Purge{IDs: []core.SessionID{id}})))
}

// TestKilledWhileItStarts: the first start on an empty database makes the schema;
// however often it is killed at that, the next one goes on.
func TestKilledWhileItStarts(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, p place) {
		model := apptest.NewProvider(t, provider.Options{Window: modelWindow})
		b := newBobbin(t, p, model.URL)
		for _, after := range startDelays() {
			must.Do(t, b.Launch())
			process.Pause(t.Context(), after)
			b.Kill()
		}
		b.start(t)
		c := b.client(t)
		session := must.Get(client.Call(t.Context(), c, ops.CreateSession, ops.NewSession{}))(t)
		a, err := apptest.SendAndWait(t.Context(), c, core.SendMessage{SessionID: session.ID, Content: "Hello"})
		if err != nil || a.Message == nil || a.Message.Content != "answer to: Hello" {
			t.Errorf("got %+v, %v, want an answer", a, err)
		}
		b.stop(t)
	})
}

// startDelays are how long after the start the process is killed: in CI a fixed list.
func startDelays() []time.Duration {
	delays := []time.Duration{0, 5 * time.Millisecond, 15 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond, 110 * time.Millisecond}
	if seed.IsChosen() {
		for range 12 {
			delays = append(delays, randomDelay(120*time.Millisecond))
		}
	}
	return delays
}

// TestToolsCrash kills Bobbin while it executes five calls at the same time, and a client's
// tool has been called, too. A call whose tool may have run is repeated only if it is declared
// safe: of the others the model and the log have that the outcome is not known.
func TestToolsCrash(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, p place) {
		w := newToolWorld(t, p)
		run := w.killInMidCall(t)
		run = w.awaitRun(t, run.ID, core.RunWaiting)
		if len(run.Approvals) != 1 || run.Approvals[0].Tool != "lookup" {
			t.Fatalf("after the restart: got the questions %+v, want the client's tool", run.Approvals)
		}
		must.Get(client.Call(t.Context(), w.client, ops.DecideApproval, ops.Decision{InRun: ops.InRun{RunID: run.ID}, ApprovalID: run.Approvals[0].ID, Result: new("in London")}))(t)
		run = w.awaitRun(t, run.ID, core.RunSucceeded)
		w.wantResults(t, run)
		w.stop(t)
	})
}

// lost is the result of a call that a crash interrupted and that is not repeated.
const lost = "error: the call was interrupted; whether it took effect is not known"

// callsInFlight are the calls of the message, and how often each reaches its tool.
var callsInFlight = []struct {
	kind, tool, arguments string
	reached               int
	result                string
}{
	{"MCP, neither read-only nor idempotent", "local__sleep", `{"mark":"%s/slept"}`, 1, lost},
	{"HTTP, GET", "read", `{}`, 2, "GET /read"},
	{"HTTP, POST", "order", `{}`, 1, lost},
	{"HTTP, POST, idempotent: true", "order_safely", `{}`, 2, "POST /order_safely"},
	{"command", "report", `{}`, 1, lost},
	{"tool of the client", "lookup", `{"name":"Ada"}`, 1, "in London"},
}

// toolWorld is a Bobbin with tools whose first calls do not end.
type toolWorld struct {
	*bobbin

	client *client.Client
	model  *provider.Server
	dir    string // where the tools that are programs leave files

	mu   sync.Mutex
	keys map[string][]string // idempotency keys of the requests that tools made, by path; guarded by mu
}

func newToolWorld(t *testing.T, p place) *toolWorld {
	t.Helper()
	model := apptest.NewProvider(t, provider.Options{Record: true, Calls: provider.CallNamed})
	w := &toolWorld{bobbin: newBobbin(t, p, model.URL), model: model, dir: den.Temp(t), keys: map[string][]string{}}
	service := httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(service.Close)
	w.configure(t, "tools: {allow: [mcp, http, command]}\n")
	program, args := mcptest.Command("")
	request := "kind: http\ndescription: Asks.\nprivate_hosts: [127.0.0.1]\napproval: never\nurl: " + service.URL
	for name, text := range map[string]string{
		"tools/local.yaml":        fmt.Sprintf("name: local\nkind: mcp\ncommand: %s\nargs: [%s, %q]\n", program, args[0], args[1]),
		"tools/read.yaml":         "name: read\n" + request + "/read\n",
		"tools/order.yaml":        "name: order\nmethod: POST\n" + request + "/order\n",
		"tools/order_safely.yaml": "name: order_safely\nmethod: POST\nidempotent: true\n" + request + "/order_safely\n",
		"tools/report.yaml":       "name: report\nkind: command\ndescription: Reports.\ncommand: ./report.sh\napproval: never\nenv: [PATH]\nargs: [" + w.dir + "]\n",
		"tools/report.sh":         "#!/bin/sh\necho called >>\"$1/reports\"\nwhile [ -d \"$1\" ]; do sleep 0.1; done\n",
		"agents/own.yaml":         "name: own\ntools: [local, read, order, order_safely, report]\ntool_settings: {local__sleep: {approval: never}}\n",
	} {
		path := filepath.Join(p.dataDir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, []byte(text), 0o700))
	}
	w.start(t)
	w.client = w.bobbin.client(t)
	return w
}

// serve answers the requests of tools. The first one of each tool waits until its process is gone.
func (w *toolWorld) serve(rw http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the server notices the end of a connection behind the body only
	w.mu.Lock()
	w.keys[r.URL.Path] = append(w.keys[r.URL.Path], r.Header.Get("Idempotency-Key"))
	first := len(w.keys[r.URL.Path]) == 1
	w.mu.Unlock()
	if first {
		<-r.Context().Done()
		return
	}
	_, _ = fmt.Fprint(rw, r.Method, " ", r.URL.Path)
}

// countCalls returns how often a tool was reached.
func (w *toolWorld) countCalls(tool string) int {
	switch tool {
	case "local__sleep":
		calls, _ := filepath.Glob(filepath.Join(w.dir, "slept*")) // the pattern is right
		return len(calls)
	case "report":
		data, _ := os.ReadFile(filepath.Join(w.dir, "reports")) // not there before the first call
		return strings.Count(string(data), "\n")
	case "lookup":
		return 1 // the client has it
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.keys["/"+tool])
}

// killInMidCall sends a message that names all calls, kills Bobbin when each tool is reached, and
// starts it again.
func (w *toolWorld) killInMidCall(t *testing.T) core.Run {
	t.Helper()
	session := must.Get(client.Call(t.Context(), w.client, ops.CreateSession, ops.NewSession{Agent: "own"}))(t)
	content := "please"
	for _, c := range callsInFlight {
		content += "\ncall " + c.tool + " " + strings.ReplaceAll(c.arguments, "%s", w.dir)
	}
	run, err := apptest.SendAsync(t.Context(), w.client, core.SendMessage{SessionID: session.ID, Content: content,
		Options: &core.RunOptions{Tools: []core.ClientTool{{Name: "lookup"}}}})
	must.Do(t, err)
	for _, c := range callsInFlight {
		process.Await(t, "a call of "+c.tool, func() bool { return w.countCalls(c.tool) > 0 })
	}
	w.Kill()
	must.Do(t, os.Rename(filepath.Join(w.dir, "slept"), filepath.Join(w.dir, "slept-before")))
	w.start(t)
	return run
}

// awaitRun returns the run when it has the status.
func (w *toolWorld) awaitRun(t *testing.T, id core.RunID, status core.RunStatus) core.Run {
	t.Helper()
	for {
		run, err := client.Call(t.Context(), w.client, ops.GetRun, ops.InRun{RunID: id})
		if err != nil || run.Status.Ended() && run.Status != status {
			t.Fatalf("got the run %s, %v, want it %s", run.Status, err, status)
		}
		if run.Status == status {
			return run
		}
		process.Pause(t.Context(), 20*time.Millisecond)
	}
}

// wantResults compares what the log and the model have of each call, and prints it.
func (w *toolWorld) wantResults(t *testing.T, run core.Run) {
	t.Helper()
	page := must.Get(client.Call(t.Context(), w.client, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: run.SessionID}}))(t)
	stored := map[string][]string{}
	for _, m := range page.Items {
		if m.Role == core.RoleTool {
			stored[m.ToolName] = append(stored[m.ToolName], m.Content)
		}
	}
	received := w.model.Received()
	var prompt []string // texts of the last prompt
	for _, m := range received[len(received)-1].Messages {
		prompt = append(prompt, m.Text)
	}
	for _, c := range callsInFlight {
		t.Logf("kill -9 of Bobbin in mid-call, %s: %d calls; the log and the model have %q", c.kind, w.countCalls(c.tool), stored[c.tool])
		compare.Equal(t, c.kind+": calls", c.reached, w.countCalls(c.tool))
		if !slices.Equal(stored[c.tool], []string{c.result}) || !slices.ContainsFunc(prompt, func(s string) bool { return strings.Contains(s, c.result) }) {
			t.Errorf("%s: the log has %q, the model %q, want %q", c.kind, stored[c.tool], prompt, c.result)
		}
	}
	if keys := w.keys["/order_safely"]; len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
		t.Errorf("got the idempotency keys %q, want the same one twice", keys)
	}
}
