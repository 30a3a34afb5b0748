package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"bobbin/app"
	"bobbin/app/api/handlers"
	"bobbin/app/client"
	"bobbin/app/core/config"
	"bobbin/tests/document"
	"bobbin/tests/provider"
)

// house is one Bobbin: a data folder and a database, served on a loopback port,
// and a client of it. It can be stopped and started again on the same folder.
type house struct {
	*client.Client // of the present start; without a key

	t    testing.TB
	http *http.Client // holds all that is sent and answered against the OpenAPI document
	cfg  config.Config
	app  *app.App
	url  string
	log  *tail
	stop func() // ends gracefully and waits; may be called again
}

// setting changes the configuration of a house.
type setting func(*config.Config)

// newHouse starts a Bobbin on a fresh data folder with the database at url. What
// the settings leave is as by default, with the demonstration model.
func newHouse(t testing.TB, url string, settings ...setting) *house {
	t.Helper()
	cfg := config.Default()
	cfg.Addr = "127.0.0.1:0"
	cfg.DataDir = t.TempDir()
	cfg.AgentsDir = filepath.Join(cfg.DataDir, "agents")
	cfg.Database.URL = config.NewSecretURL(url)
	cfg.DefaultLLM = "demo" // not by what the machine's environment holds
	cfg.Titles = false      // they are calls that only their own tests expect
	for _, set := range settings {
		set(&cfg)
	}
	h := &house{t: t, http: checkedHTTP(t), cfg: cfg, log: &tail{}, stop: func() {}}
	t.Cleanup(func() {
		h.stop()
		if t.Failed() {
			t.Logf("the last of the log:\n%s", h.log)
		}
	})
	h.start()
	return h
}

// start builds and serves the house.
func (h *house) start() {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	level := slog.LevelWarn
	if h.cfg.Log.Level == "debug" {
		level, h.log.most = slog.LevelDebug, 100_000
	}
	logger := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: level}))
	built, err := app.New(ctx, h.cfg, handlers.Build{Version: "test"}, logger)
	if err != nil {
		cancel()
		h.t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", h.cfg.Addr)
	if err != nil {
		cancel()
		h.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- built.Run(ctx, listener) }()
	h.app, h.url = built, "http://"+listener.Addr().String()
	h.Client = h.client("")
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			h.t.Errorf("stop: %v", err)
		}
	})
}

// restart stops the house and starts it again on the same folder and database.
func (h *house) restart() {
	h.t.Helper()
	h.stop()
	h.start()
}

// client returns a client with a key of its own; empty = none.
func (h *house) client(key string) *client.Client {
	h.t.Helper()
	c, err := client.New(client.Options{URL: h.url, Key: key, HTTP: h.http})
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// checkedHTTP returns a client that fails the test over a request or an answer, an event
// of a stream included, that is not in the OpenAPI document (issue 3, 8).
func checkedHTTP(t testing.TB) *http.Client {
	t.Helper()
	d, err := document.Load()
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: document.NewTransport(t, d, http.DefaultTransport)}
}

// newProvider starts a fake provider and stops it after the test.
func newProvider(t testing.TB, o provider.Options) *provider.Server {
	t.Helper()
	p, err := provider.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// withModel adds a model of the provider's; the first one is the default.
func withModel(name string, window, maxOutput int, p *provider.Server) setting {
	return func(c *config.Config) {
		c.Models = append(c.Models, config.Model{
			Name: name, Provider: "openai", BaseURL: p.URL, ContextWindow: window, MaxOutputTokens: maxOutput,
		})
		c.DefaultLLM = c.Models[0].Name
	}
}

// sized is how much a test does: CI has the short form, BOBBIN_TEST_LONG=1 the long one
// (make show-…). What is wanted of both is the same.
func sized(short, full int) int {
	if long() {
		return full
	}
	return short
}

// withGrace sets how long work in hand may go on when the house stops.
func withGrace(d time.Duration) setting {
	return func(c *config.Config) { c.Limits.ShutdownGrace = d }
}

// tail keeps the end of a log. Safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	lines [][]byte // guarded by mu
	most  int      // lines that are kept; 0 = tailLines
}

const tailLines = 60

// Write keeps one line.
func (t *tail) Write(line []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, bytes.Clone(line))
	if len(t.lines) > max(t.most, tailLines) {
		t.lines = t.lines[1:]
	}
	return len(line), nil
}

// String returns what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.Join(t.lines, nil))
}

// table is figures to be logged under a title, aligned.
type table struct {
	title string
	rows  [][]any
}

func newTable(format string, args ...any) *table { return &table{title: fmt.Sprintf(format, args...)} }

// row adds a line: what was measured, and its values.
func (tb *table) row(cells ...any) { tb.rows = append(tb.rows, cells) }

// log prints the table.
func (tb *table) log(t testing.TB) {
	t.Helper()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, row := range tb.rows {
		fmt.Fprint(w, "  ")
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, cell)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		t.Error(err)
	}
	t.Logf("\n%s\n%s", tb.title, b.String())
}
