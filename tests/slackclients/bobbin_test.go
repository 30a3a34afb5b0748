package slackclients_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bobbin/app/cli"
	"bobbin/app/client"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
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

// bobbin is a Bobbin in a process of its own, installed in a workspace of the fake Slack.
type bobbin struct {
	*world
	*client.Client

	addr string
}

// start starts a model, and a Bobbin that uses the Web API at the address.
func (b *bobbin) start(t *testing.T, apiURL, secret string) {
	t.Helper()
	model := must.Get(provider.New(provider.Options{}))(t)
	t.Cleanup(model.Close)
	dir := den.Temp(t)
	must.Do(t, os.MkdirAll(filepath.Join(dir, "agents"), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(dir, "agents", "careful.yaml"),
		[]byte("name: careful\nsystem_prompt: You answer.\ntools: [calculator]\ntool_settings:\n  calculator: {approval: always}\n"), 0o600))
	program, err := os.Executable()
	must.Do(t, err)
	server := den.NewServer(t, program, dir, fmt.Sprintf("default_llm: small\ntitles: false\nslack: {agent: careful, api_url: '%s'}\nmodels:\n  - name: small\n    provider: openai\n"+
		"    base_url: %s\n    api_key_env: PROVIDER_KEY\n    context_window: 100000\n    max_output_tokens: 20000\n", apiURL, model.URL),
		serveVariable+"=1", "BOBBIN_DATABASE_URL="+dbtest.MigratedSQLiteURL(t), "BOBBIN_SLACK_BOT_TOKEN="+b.token, secret)
	t.Cleanup(func() {
		if log, _ := server.ReadLog(); t.Failed() {
			t.Logf("the end of Bobbin's log:\n%s", log[max(0, len(log)-6000):])
		}
	})
	must.Do(t, server.Start(t.Context()))
	b.addr = server.Door.Addr()
	b.Client, err = client.New(client.Options{URL: "http://" + b.addr})
	must.Do(t, err)
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

// status returns the status of a request to Bobbin.
func (r rawRequest) status(t *testing.T, base string) int {
	t.Helper()
	request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, base+r.path, strings.NewReader(r.body)))(t)
	for name, value := range r.header {
		request.Header.Set(name, value)
	}
	response := must.Get(http.DefaultClient.Do(request))(t)
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// rawRequest is a request to the request URLs of an app.
type rawRequest struct {
	path, body string
	header     map[string]string
}
