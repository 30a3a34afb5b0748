package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bobbin/app/client"
	"bobbin/tests/apptest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
	"bobbin/tests/slackfake/fakeslack"
)

// Keys of Bobbins that want one.
const (
	aliceKey = "q7Zf2mW9xK4vT1nB8cR5yH3pL6dJ0sG2"
	robinKey = "t3Kd8sL1wQ6zV9mX2cN5bJ7hG4fR0yPa"
)

// bobbin is a Bobbin in processes of its own behind a proxy, and what the scripts may do to it.
type bobbin struct {
	*client.Client // past the proxy
	URL            string

	model    *provider.Server
	gates    gates
	proxy    *process.Link
	control  *httptest.Server
	dir      string
	replicas []*replica // the proxy leads to the first one
}

// replica is one of the processes.
type replica struct {
	addr, dir string
	variables []string // that join it with the other one
	now       *process.Process
}

// setup is what a Bobbin is like.
type setup struct {
	database string
	keys     bool                         // requests need aliceKey
	window   int                          // of the model; 0 = 32,000 tokens
	pieces   int                          // of an answer; 0 = 8
	pace     time.Duration                // between pieces
	brisk    string                       // questions that begin with it are answered without the pace
	say      func(question string) string // nil = repeatQuestion
	summary  func(material string) string // nil = summarize
	bare     bool                         // answers do not begin with "answer to: "
	slack    *fakeslack.Server            // nil = Slack is off
	token    string                       // of the app there
	settings string                       // more lines of bobbin.yaml
	replicas int                          // on one PostgreSQL; 0 = 1
}

// newBobbin starts a model, a Bobbin and the proxy.
func newBobbin(t *testing.T, s setup) *bobbin {
	t.Helper()
	process.FindBrowser(t, "js") // before anything is started
	b := &bobbin{dir: den.Temp(t), replicas: newReplicas(t, max(s.replicas, 1)), gates: gates{open: map[string]chan struct{}{}}}
	if s.window == 0 {
		s.window = 32_000
	}
	if s.pieces == 0 {
		s.pieces = 8
	}
	if s.say == nil {
		s.say = repeatQuestion
	}
	if s.summary == nil {
		s.summary = summarize
	}
	pace := pacer{gap: s.pace}
	b.model = apptest.NewProvider(t, provider.Options{Say: s.say, Summarize: s.summary, Bare: s.bare, Pieces: s.pieces, Calls: callTool, Fault: fail, Hold: func(question string) {
		b.gates.hold(question)
		if s.brisk == "" || !strings.HasPrefix(question, s.brisk) {
			pace.wait(t)
		}
	}})
	t.Cleanup(b.gates.release) // before the model waits for its answers
	b.configure(t, s)
	for _, r := range b.replicas {
		b.start(t, s, r)
	}
	b.proxy = process.NewLink(t, b.replicas[0].addr)
	b.URL = "http://" + b.proxy.Addr() + "/"
	b.control = httptest.NewServer(b.controls(t, s))
	t.Cleanup(b.control.Close)
	return b
}

// newReplicas returns replicas that have not started; several know each other.
func newReplicas(t *testing.T, n int) []*replica {
	t.Helper()
	all := make([]*replica, n)
	for i := range all {
		all[i] = &replica{addr: process.FreeAddress(t), dir: den.Temp(t)}
	}
	if n == 1 {
		return all
	}
	clusters := []string{process.FreeAddress(t), process.FreeAddress(t)}
	for i, r := range all {
		r.variables = []string{"BOBBIN_NATS_CLUSTER_ADDR=" + clusters[i], "BOBBIN_NATS_PEERS=" + clusters[1-i], "BOBBIN_NATS_SECRET=" + aliceKey}
	}
	return all
}

// repeatQuestion says the question; "one long line" has an answer of 1 MB.
func repeatQuestion(question string) string {
	if question == "one long line" {
		return strings.Repeat("long ", 200_000)
	}
	return question
}

// summarize says nothing about words beyond words, which Bobbin then summarizes without the model.
func summarize(material string) string {
	if strings.Contains(material, "beyond words") {
		return ""
	}
	return provider.Summary(material)
}

// callTool calls the calculator when a message asks for it.
func callTool(r provider.Received) []provider.Call {
	last := r.Messages[len(r.Messages)-1]
	if last.Role != "user" || !strings.Contains(last.Text, "calculate") {
		return nil
	}
	return []provider.Call{{ID: "call_" + strconv.Itoa(len(r.Messages)), Name: "calculator", Arguments: `{"expression": "6*7"}`}}
}

// fail refuses what asks for it.
func fail(w http.ResponseWriter, a provider.Asked) bool {
	status, code := http.StatusBadRequest, ""
	switch {
	case strings.HasSuffix(a.Question, "the provider fails here"):
	case strings.HasSuffix(a.Question, "the provider rejects the key"):
		status = http.StatusUnauthorized
	case strings.HasSuffix(a.Question, "the provider filters this"):
		code = "content_filter"
	default:
		return false
	}
	http.Error(w, fmt.Sprintf(`{"error":{"message":"the model is out of order","type":"invalid_request_error","code":%q}}`, code), status)
	return true
}

func (b *bobbin) configure(t *testing.T, s setup) {
	t.Helper()
	agents := filepath.Join(b.dir, "agents")
	must.Do(t, os.MkdirAll(agents, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(agents, "brief.yaml"), []byte("name: brief\nmodel: smaller\n"), 0o600))
	must.Do(t, os.WriteFile(filepath.Join(agents, "careful.yaml"),
		[]byte("name: careful\nsystem_prompt: You ask before you act.\ntools: [calculator]\ntool_settings:\n  calculator: {approval: always}\n"), 0o600))
	var text strings.Builder
	text.WriteString("default_llm: small\ntitles: false\n")
	if s.keys {
		fmt.Fprintf(&text, "auth: {required: true, keys: [{name: alice, secret: %s}, {name: robin, secret: %s}]}\n", aliceKey, robinKey)
	}
	text.WriteString(s.settings)
	text.WriteString("models:\n")
	for name, window := range map[string]int{"small": s.window, "smaller": max(s.window/4, 2000), "tiny": apptest.ChooseSize(3000, 7000)} {
		fmt.Fprintf(&text, "  - {name: %s, provider: openai, base_url: '%s', api_key_env: PROVIDER_KEY, context_window: %d, max_output_tokens: %d}\n",
			name, b.model.URL, window, min(window/8, 4096))
	}
	must.Do(t, os.WriteFile(filepath.Join(b.dir, "bobbin.yaml"), []byte(text.String()), 0o600))
	options := client.Options{URL: "http://" + b.replicas[0].addr}
	if s.keys {
		options.Key = aliceKey
	}
	b.Client = must.Get(client.New(options))(t)
	t.Cleanup(func() {
		for _, r := range b.replicas {
			r.now.Kill()
			if log, err := os.ReadFile(filepath.Join(r.dir, "log")); t.Failed() && err == nil {
				t.Logf("the end of Bobbin's log:\n%s", log[max(0, len(log)-3000):])
			}
		}
	})
}

// start starts a process and waits until it takes requests.
func (b *bobbin) start(t *testing.T, s setup, r *replica) {
	t.Helper()
	cmd := exec.Command(den.Program(t, false), "serve", "--config", filepath.Join(b.dir, "bobbin.yaml"), "--data-dir", r.dir, //nolint:noctx // killed at the end of the test
		"--agents-dir", filepath.Join(b.dir, "agents"), "--addr", r.addr, "--log-format", "text")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "TMPDIR=" + r.dir, "PROVIDER_KEY=none", "BOBBIN_DATABASE_URL=" + s.database}, r.variables...)
	if s.slack != nil {
		cmd.Env = append(cmd.Env, "BOBBIN_SLACK_API_URL="+s.slack.APIURL(), "BOBBIN_SLACK_BOT_TOKEN="+s.token, "BOBBIN_SLACK_SIGNING_SECRET=signing-secret")
	}
	r.now = must.Get(den.Start(cmd, filepath.Join(r.dir, "log")))(t)
	for limit := time.Now().Add(apptest.Patience); ; apptest.PauseBriefly(t) {
		if answer, err := http.Get("http://" + r.addr + "/readyz"); err == nil { //nolint:noctx // asked until it answers
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-r.now.Exited:
			t.Fatalf("Bobbin ended at its start: %s", r.now.Cmd.ProcessState)
		default:
		}
		if time.Now().After(limit) {
			t.Fatal("Bobbin does not start")
		}
	}
}

// controls is what scripts may do beside the page.
func (b *bobbin) controls(t *testing.T, s setup) http.Handler {
	mux := http.NewServeMux()
	handle := func(path string, do func(r *http.Request)) {
		mux.HandleFunc("POST "+path, func(_ http.ResponseWriter, r *http.Request) { do(r) })
	}
	number := func(r *http.Request, name string) int { n, _ := strconv.Atoi(r.FormValue(name)); return n }
	handle("/release", func(r *http.Request) { b.gates.pass(r.FormValue("mark"), number(r, "pieces")) })
	mux.HandleFunc("POST /gone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }) // a webhook that is not tried again
	handle("/cut", func(*http.Request) { b.proxy.Break() })
	handle("/delay", func(r *http.Request) { b.proxy.SetDelay(time.Duration(number(r, "ms")) * time.Millisecond) })
	handle("/refuse", func(r *http.Request) {
		b.proxy.Set(map[string]process.LinkState{"true": process.LinkCut}[r.FormValue("on")])
	})
	handle("/restart", func(r *http.Request) {
		first := b.replicas[0]
		if r.FormValue("kill") == "" {
			_ = first.now.Cmd.Process.Signal(syscall.SIGTERM)
			<-first.now.Exited
		} else {
			first.now.Kill()
		}
		b.start(t, s, first)
	})
	handle("/switch", func(r *http.Request) {
		slices.Reverse(b.replicas)
		b.proxy.Lead(b.replicas[0].addr)
		if r.FormValue("kill") != "" {
			b.replicas[1].now.Kill()
			b.start(t, s, b.replicas[1])
		}
	})
	if s.slack != nil {
		handle("/slack", func(r *http.Request) {
			s.slack.Inject(fakeslack.Fault{Method: r.FormValue("method"), Error: r.FormValue("error"), Status: number(r, "status"), Times: number(r, "times")})
		})
		handle("/slack-clear", func(*http.Request) { s.slack.ClearFaults() })
	}
	return mux
}

// pacer is a model's speed: what comes late on a busy machine is made up for. Safe for concurrent use.
type pacer struct {
	gap time.Duration

	mu  sync.Mutex
	due time.Time // the next piece; guarded by mu
}

// wait waits until a piece is due.
func (p *pacer) wait(t *testing.T) {
	p.mu.Lock()
	if time.Since(p.due) > 5*time.Second { // another answer
		p.due = time.Now()
	}
	p.due = p.due.Add(p.gap)
	due := p.due
	p.mu.Unlock()
	process.Pause(t.Context(), time.Until(due))
}

// gates hold the answers to questions that have a word hold-<name>, piece by piece. Safe for concurrent use.
type gates struct {
	mu   sync.Mutex
	open map[string]chan struct{} // by the word; guarded by mu
	all  bool                     // nothing is held any more; guarded by mu
}

var mark = regexp.MustCompile(`hold-\w+`)

func (g *gates) at(name string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all {
		return nil
	}
	if g.open[name] == nil {
		g.open[name] = make(chan struct{}, 10_000)
	}
	return g.open[name]
}

func (g *gates) hold(question string) {
	if name := mark.FindString(question); name != "" {
		if c := g.at(name); c != nil {
			<-c
		}
	}
}

// pass lets the next pieces of an answer through.
func (g *gates) pass(name string, pieces int) {
	for c := g.at(name); c != nil && pieces > 0; pieces-- {
		c <- struct{}{}
	}
}

// release lets everything through.
func (g *gates) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = true
	for _, c := range g.open {
		close(c)
	}
}
