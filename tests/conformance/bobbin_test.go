package conformance_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bobbin/app/cli"
	native "bobbin/app/client"
	"bobbin/tests/apptest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// serveVariable makes the test program a Bobbin.
const serveVariable = "BOBBIN_CONFORMANCE_SERVE"

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
	process.Main(m, "conformance", &den)
}

// The keys of two owners.
const (
	aliceKey = "bbn-alice-0123456789-0123456789"
	bobKey   = "bbn-bob-0123456789-0123456789-01"
)

// answerPieces is in how many pieces answers come.
const answerPieces = 16

// smallWindow is the window of the model small, in tokens.
const smallWindow = 8192

// bobbin is a Bobbin in a process of its own with a scripted provider. Clients reach it through
// a proxy, which counts their requests and cuts connections.
type bobbin struct {
	*native.Client // of Alice

	gates    *gates
	provider *provider.Server // of the model large
	small    *provider.Server // of the model small, which has a small window
	front    *front
	server   *process.Server
	addr     string
}

// newBobbin starts a Bobbin with its providers and two owners.
func newBobbin(t *testing.T, database string) *bobbin {
	t.Helper()
	settings := "auth: {keys: [{name: alice, secret: " + aliceKey + "}, {name: bob, secret: " + bobKey + "}]}\n"
	b := &bobbin{gates: &gates{closed: map[string]*gate{}, broken: map[string]bool{}, pieces: map[string]int{}}}
	b.provider = apptest.NewProvider(t, provider.Options{Pieces: answerPieces, Hold: b.gates.hold, Record: true, Say: say, Calls: callTools})
	b.small = apptest.NewProvider(t, provider.Options{Window: smallWindow, Say: say})
	dir := den.Temp(t)
	must.Do(t, os.MkdirAll(filepath.Join(dir, "agents"), 0o700))
	for name, text := range map[string]string{
		"plain":   "name: plain\nsystem_prompt: You answer.\nmodel: large\n",
		"reader":  "name: reader\nsystem_prompt: You answer.\nmodel: small\n",
		"helper":  "name: helper\nsystem_prompt: You answer.\nmodel: large\ntools: [calculator]\n",
		"careful": "name: careful\nsystem_prompt: You answer.\nmodel: large\ntools: [calculator]\ntool_settings:\n  calculator: {approval: always}\n",
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, "agents", name+".yaml"), []byte(text), 0o600))
	}
	model := "  - {name: %s, provider: openai, base_url: '%s', api_key_env: PROVIDER_KEY, context_window: %d, max_output_tokens: %d, images: true}\n"
	config := "default_agent: plain\ndefault_llm: large\ntitles: false\n" + settings +
		"limits: {requests_per_second: 0}\nmodels:\n" +
		fmt.Sprintf(model, "large", b.provider.URL, 100_000, 20_000) + fmt.Sprintf(model, "small", b.small.URL, smallWindow, 1024)
	program, err := os.Executable()
	must.Do(t, err)
	b.server = den.NewServer(t, program, dir, config, serveVariable+"=1", "BOBBIN_DATABASE_URL="+database)
	t.Cleanup(func() {
		if log, _ := b.server.ReadLog(); t.Failed() {
			t.Logf("the end of Bobbin's log:\n%s", log[max(0, len(log)-6000):])
		}
	})
	must.Do(t, b.server.Start(t.Context()))
	b.addr = b.server.Door.Addr()
	f := &front{requests: map[string]int{}, headers: map[string]http.Header{}}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: b.addr})
	proxy.FlushInterval = -1
	proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 100}
	proxy.ModifyResponse = f.pass
	proxy.ErrorLog = log.New(io.Discard, "", 0) // connections break on purpose
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Else the first bytes of an answer close the request's body, which the proxy may still read.
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/1 has it
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	f.url = server.URL + "/v1"
	b.front = f
	b.Client, err = native.New(native.Options{URL: "http://" + b.addr, Key: aliceKey})
	must.Do(t, err)
	return b
}

// say is what the model says to a question.
func say(question string) string {
	switch {
	case strings.Contains(question, "as JSON"):
		return `{"city":"Bonn","people":340000}`
	case strings.Contains(question, "at length"):
		return question + strings.Repeat(" Größe, 大きさ und 👩‍👩‍👧 <b>&\u2028\"quoted\"\n", 60)
	default:
		return question
	}
}

// Headers between the clients and the proxy.
const (
	headerCase = "X-Test-Case" // whose request it is
	headerCut  = "X-Test-Cut"  // after how many bytes of the answer the connection breaks
)

// front is a proxy before Bobbin. Safe for concurrent use.
type front struct {
	url string

	mu       sync.Mutex
	requests map[string]int         // by the case; guarded by mu
	headers  map[string]http.Header // of the latest answer, by the case; guarded by mu
}

// pass keeps what the tests ask about, and cuts the answer if the request asks for it.
func (f *front) pass(r *http.Response) error {
	name := r.Request.Header.Get(headerCase)
	f.mu.Lock()
	f.requests[name]++
	f.headers[name] = r.Header.Clone()
	f.mu.Unlock()
	if n, err := strconv.Atoi(r.Request.Header.Get(headerCut)); err == nil {
		r.Body = &cutBody{r.Body, n}
	}
	return nil
}

// count returns how many requests of the case there were since the last time.
func (f *front) count(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.requests[name]
	f.requests[name] = 0
	return n
}

// header returns a header of the latest answer of the case.
func (f *front) header(name, header string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.headers[name].Get(header)
}

// cutBody is a body that breaks off.
type cutBody struct {
	io.ReadCloser

	left int
}

// Read reads what is left before the cut.
func (b *cutBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// gates hold answers of the model to questions with certain marks.
type gates struct {
	mu     sync.Mutex
	closed map[string]*gate // guarded by mu
	broken map[string]bool  // questions; guarded by mu
	pieces map[string]int   // of answers so far, by the question; guarded by mu
}

// gate is closed until the test opens it.
type gate struct{ asked, open chan struct{} }

// add holds the next answer to a question with the mark, after its first words.
func (g *gates) add(t *testing.T, mark string) *gate {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	one := &gate{make(chan struct{}), make(chan struct{})}
	g.closed[mark] = one
	t.Cleanup(one.release)
	return one
}

// release lets the answer go on.
func (g *gate) release() {
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// The words of a question whose answer breaks off: the provider's connection ends.
const (
	breakOnce   = "break once" // with "at piece 3": when so many pieces are sent
	breakAlways = "break always"
	slowly      = "slowly" // the answer takes a moment
)

// breakPiece returns how many pieces the question wants before its answer breaks off.
func breakPiece(question string) int {
	_, rest, _ := strings.Cut(question, "at piece ")
	number, _, _ := strings.Cut(rest, " ")
	n, _ := strconv.Atoi(number) // 0 = immediately
	return n
}

func (g *gates) hold(question string) {
	var found *gate
	g.mu.Lock()
	for mark, one := range g.closed {
		if strings.Contains(question, mark) {
			found = one
			delete(g.closed, mark)
		}
	}
	g.pieces[question]++
	breaks := strings.Contains(question, breakAlways) || strings.Contains(question, breakOnce) && !g.broken[question] && g.pieces[question] > breakPiece(question)
	g.broken[question] = g.broken[question] || breaks
	g.mu.Unlock()
	if strings.Contains(question, slowly) {
		process.Pause(context.Background(), 2*time.Millisecond) // so that connections break while text comes
	}
	if breaks {
		panic(http.ErrAbortHandler)
	}
	if found != nil {
		close(found.asked)
		<-found.open
	}
}
