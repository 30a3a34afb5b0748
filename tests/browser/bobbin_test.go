package browser_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	replicas []*process.Server // the proxy leads to the first one
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
	b := &bobbin{gates: gates{open: map[string]chan struct{}{}}}
	s.window, s.pieces = cmp.Or(s.window, 32_000), cmp.Or(s.pieces, 8)
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
	b.proxy = process.NewLink(t, "")
	for _, r := range b.replicas {
		b.start(t, r)
	}
	b.URL = "http://" + b.proxy.Addr() + "/"
	b.control = httptest.NewServer(b.controls(t, s))
	t.Cleanup(b.control.Close)
	return b
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
	case strings.HasSuffix(a.Question, "the provider cuts this"):
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"half an answer"},"finish_reason":"content_filter"}]}`+"\n\ndata: [DONE]\n\n")
		return true
	default:
		return false
	}
	http.Error(w, fmt.Sprintf(`{"error":{"message":"the model is out of order","type":"invalid_request_error","code":%q}}`, code), status)
	return true
}

// configure sets the replicas up; several know each other.
func (b *bobbin) configure(t *testing.T, s setup) {
	t.Helper()
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
	clusters := []string{process.FreeAddress(t), process.FreeAddress(t)}
	for i := range max(s.replicas, 1) {
		variables := []string{"BOBBIN_DATABASE_URL=" + s.database}
		if s.replicas > 1 {
			variables = append(variables, "BOBBIN_NATS_CLUSTER_ADDR="+clusters[i], "BOBBIN_NATS_PEERS="+clusters[1-i], "BOBBIN_NATS_SECRET="+aliceKey)
		}
		if s.slack != nil {
			variables = append(variables, "BOBBIN_SLACK_API_URL="+s.slack.APIURL(), "BOBBIN_SLACK_BOT_TOKEN="+s.token, "BOBBIN_SLACK_SIGNING_SECRET=signing-secret")
		}
		r := den.NewServer(t, den.Program(t, false), den.Temp(t), text.String(), variables...)
		agents := filepath.Join(r.Dir, "agents")
		must.Do(t, os.MkdirAll(agents, 0o700))
		must.Do(t, os.WriteFile(filepath.Join(agents, "brief.yaml"), []byte("name: brief\nmodel: smaller\n"), 0o600))
		must.Do(t, os.WriteFile(filepath.Join(agents, "full.yaml"), []byte("name: full\ncontext: {policy: off}\n"), 0o600))
		must.Do(t, os.WriteFile(filepath.Join(agents, "careful.yaml"),
			[]byte("name: careful\nsystem_prompt: You ask before you act.\ntools: [calculator]\ntool_settings:\n  calculator: {approval: always}\n"), 0o600))
		t.Cleanup(func() {
			if log, _ := r.ReadLog(); t.Failed() {
				t.Logf("the end of Bobbin's log:\n%s", log[max(0, len(log)-3000):])
			}
		})
		b.replicas = append(b.replicas, r)
	}
	options := client.Options{URL: "http://localhost", HTTP: &http.Client{Transport: &http.Transport{DialContext: b.replicas[0].Door.Dial}}}
	if s.keys {
		options.Key = aliceKey
	}
	b.Client = must.Get(client.New(options))(t)
}

// start starts a process and waits until it takes requests.
func (b *bobbin) start(t *testing.T, r *process.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), apptest.Patience)
	defer cancel()
	must.Do(t, r.Serve(ctx))
	if r == b.replicas[0] {
		b.proxy.Lead(r.Door.Addr())
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
			_ = first.Stop(apptest.Patience) // how it ended is not what is looked at
		}
		first.Kill()
		b.start(t, first)
	})
	handle("/switch", func(r *http.Request) {
		slices.Reverse(b.replicas)
		b.proxy.Lead(b.replicas[0].Door.Addr())
		if r.FormValue("kill") != "" {
			b.replicas[1].Kill()
			b.start(t, b.replicas[1])
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
