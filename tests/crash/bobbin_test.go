package crash_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/mcptest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
	"bobbin/tests/seed"
)

// patience is how long the tests wait for what should take no time, and for what takes
// a lease: long enough for any machine.
const patience = 2 * time.Minute

// The model of the tests: a window so small that summaries are made often.
const (
	modelWindow = 6_000
	modelOutput = 1_000
)

// bobbin is a Bobbin in a process of its own, which is killed and started again
// on the same data.
type bobbin struct {
	*process.Server
	place place
}

// newBobbin returns a Bobbin that asks the provider at url. It is not started.
func newBobbin(t *testing.T, p place, url string) *bobbin {
	t.Helper()
	b := &bobbin{place: p, Server: den.NewServer(t, den.Program(t, process.Raced), p.dataDir, fmt.Sprintf("default_llm: small\nmodels:\n  - name: small\n    provider: openai\n    base_url: %s\n"+
		"    api_key_env: PROVIDER_KEY\n    context_window: %d\n    max_output_tokens: %d\n", url, modelWindow, modelOutput), "BOBBIN_DATABASE_URL="+p.database)}
	t.Cleanup(func() {
		b.Kill()
		log, bad := b.ReadLog("DATA RACE", "panic", "fatal error:", "level=ERROR")
		for _, text := range bad {
			t.Error(text)
		}
		if t.Failed() {
			t.Logf("the end of bobbin's log:\n%s", log[max(0, len(log)-4000):])
		}
	})
	return b
}

// configure adds settings in YAML. They count from the next start on.
func (b *bobbin) configure(t *testing.T, settings string) {
	t.Helper()
	f, err := os.OpenFile(b.Config, os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(settings)
		err = errors.Join(err, f.Close())
	}
	must.Do(t, err)
}

// start starts the process and waits until it takes requests.
func (b *bobbin) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must.Do(t, b.Serve(ctx))
}

// stop ends the process as an operator does and expects it to end well.
func (b *bobbin) stop(t *testing.T) {
	t.Helper()
	must.Do(t, b.Stop(patience))
}

// client returns a client whose connections wait for the process to be up.
func (b *bobbin) client(t *testing.T) *client.Client {
	t.Helper()
	transport := &http.Transport{DialContext: b.Door.Dial, MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return must.Get(client.New(client.Options{URL: "http://localhost", HTTP: &http.Client{Transport: transport}}))(t)
}

// den holds all files of the tests: the program that they start and its data.
var den *process.Den

func TestMain(m *testing.M) {
	mcptest.Main()
	process.Main(m, "crash", &den)
}

// place is where a Bobbin keeps what it has.
type place struct {
	dataDir  string
	database string // URL
}

// eachPlace runs test with SQLite and with PostgreSQL.
func eachPlace(t *testing.T, test func(t *testing.T, p place)) {
	t.Helper()
	dbtest.EachURL(t, func(t *testing.T, url string) { test(t, place{den.Temp(t), url}) })
}

// open opens the database; the caller closes it.
func (p place) open(t *testing.T) *db.DB {
	t.Helper()
	return must.Get(db.Open(t.Context(), p.database, slog.New(slog.DiscardHandler)))(t)
}

// dice returns random choices of their own for one goroutine.
func dice(who int) *rand.Rand { return seed.Fixed(seed.Value(), uint64(who)) }

// shared is for goroutines that come and go. The seed does not decide who of them draws first.
var shared = seed.Fixed(seed.Value(), 1<<40)

// randomDelay returns a time shorter than the longest.
func randomDelay(longest time.Duration) time.Duration {
	return time.Duration(shared.Int64N(int64(longest)))
}

// TestStoppedWithARunAtWork: after SIGTERM the run goes on within the grace period, and
// whoever reads its stream gets it to its end; who comes anew is told to come again. The same
// holds for SIGHUP, which a terminal sends that is closed.
func TestStoppedWithARunAtWork(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			stopWithARunAtWork(t, sig)
		})
	}
}

func stopWithARunAtWork(t *testing.T, sig syscall.Signal) {
	hangups := make(chan os.Signal, 1) // else those that nohup starts, and their children, ignore it
	signal.Notify(hangups, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangups) })
	eachPlace(t, func(t *testing.T, p place) {
		g := newGrace(t, p, "30s")
		stream := g.ask(t, "/api/v1/sessions/"+string(g.session)+"/messages", `{"content":"Are you there?"}`)
		<-g.half
		compare.Equal(t, "/readyz before the signal", http.StatusOK, g.ask(t, "/readyz", "").StatusCode)
		must.Do(t, g.Signal(sig))
		g.refused(t)
		g.release()
		rest, err := io.ReadAll(stream.Body)
		if err != nil || !strings.Contains(string(rest), "event: run.succeeded") {
			t.Errorf("the stream after SIGTERM: %v\n%s\nwant it to its end", err, rest)
		}
		must.Do(t, g.Wait(patience))
	})
}

// grace is a Bobbin whose provider holds the answer until release.
type grace struct {
	*bobbin
	model   string // URL
	session core.SessionID
	release func()
	half    chan struct{} // gets a value when the provider has said half of an answer
}

func newGrace(t *testing.T, p place, period string) *grace {
	t.Helper()
	hold, half := make(chan struct{}), make(chan struct{}, 10)
	release := sync.OnceFunc(func() { close(hold) })
	model := apptest.NewProvider(t, provider.Options{Window: modelWindow, Hold: func(string) {
		half <- struct{}{}
		<-hold
	}})
	t.Cleanup(release)
	b := newBobbin(t, p, model.URL)
	b.configure(t, "limits: {shutdown_grace: "+period+"}\n")
	b.start(t)
	session := must.Get(client.Call(t.Context(), b.client(t), ops.CreateSession, ops.NewSession{}))(t)
	return &grace{bobbin: b, model: model.URL, session: session.ID, release: release, half: half}
}

// ask sends a request over a connection of its own.
func (g *grace) ask(t *testing.T, path, body string) *http.Response {
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req := must.Get(http.NewRequestWithContext(t.Context(), method, "http://"+g.Door.Addr()+path, strings.NewReader(body)))(t)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Content-Type", "application/json")
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// refused waits until the server is not ready, and looks how it refuses.
func (g *grace) refused(t *testing.T) {
	t.Helper()
	process.Await(t, "the signal counts", func() bool {
		res := g.ask(t, "/readyz", "")
		_ = res.Body.Close()
		return res.StatusCode != http.StatusOK
	})
	compare.Equal(t, "/healthz while it stops: it lives", http.StatusOK, g.ask(t, "/healthz", "").StatusCode)
	for _, request := range [][2]string{{"/api/v1/sessions/" + string(g.session) + "/messages", `{"content":"And now?"}`}, {"/api/v1/sessions", ""}} {
		res := g.ask(t, request[0], request[1])
		body, _ := bufio.NewReader(res.Body).ReadString('\n')
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Errorf("while it stops %s answers %s, Retry-After %q: %s", request[0], res.Status, res.Header.Get("Retry-After"), body)
		}
	}
}
