package crash_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"bobbin/app/client"
	"bobbin/tests/must"
	"bobbin/tests/process"
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

// start starts the process and waits for an answer to what is not let in before the start is over.
func (b *bobbin) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must.Do(t, b.Start(ctx))
	req := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.Door.Addr()+"/version", nil))(t)
	res := must.Get((&http.Transport{DisableKeepAlives: true}).RoundTrip(req))(t)
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("bobbin answers %s, %v", res.Status, err)
	}
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
