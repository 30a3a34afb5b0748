package crash_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

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
		g.terminate(t, sig)
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

// terminate sends a signal to a process that is ready.
func (g *grace) terminate(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if res := g.ask(t, "/readyz", ""); res.StatusCode != http.StatusOK {
		t.Errorf("before the signal /readyz answers %s", res.Status)
	}
	must.Do(t, g.Signal(sig))
}

// refused waits until the server is not ready, and looks how it refuses.
func (g *grace) refused(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		res := g.ask(t, "/readyz", "")
		if _ = res.Body.Close(); res.StatusCode != http.StatusOK {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("still ready %s after the signal", patience)
		}
	}
	if res := g.ask(t, "/healthz", ""); res.StatusCode != http.StatusOK {
		t.Errorf("while it stops /healthz answers %s, want 200: it lives", res.Status)
	}
	for _, request := range [][2]string{{"/api/v1/sessions/" + string(g.session) + "/messages", `{"content":"And now?"}`}, {"/api/v1/sessions", ""}} {
		res := g.ask(t, request[0], request[1])
		body, _ := bufio.NewReader(res.Body).ReadString('\n')
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Errorf("while it stops %s answers %s, Retry-After %q: %s", request[0], res.Status, res.Header.Get("Retry-After"), body)
		}
	}
}
