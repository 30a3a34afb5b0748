// Package apptest serves Bobbin in the process of a test, for packages that drive the whole
// program: the parts as app.New joins them, with a database and models of the test.
package apptest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app"
	"bobbin/app/api/handlers"
	"bobbin/app/client"
	"bobbin/app/core/config"
	"bobbin/app/db"
	"bobbin/app/extract"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/document"
	"bobbin/tests/mcptest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
	"bobbin/tests/seed"
)

// Bobbin is one Bobbin: a data folder and a database, served on a loopback port,
// and a client of it. It can be stopped and started again on the same folder.
type Bobbin struct {
	*client.Client // of the present start; without a key

	T      testing.TB    // the test
	HTTP   *http.Client  // holds all that is sent and answered against the OpenAPI document
	Config config.Config // of the next start
	App    *app.App      // of the present start
	URL    string
	Log    *Tail  // the end of its log
	Stop   func() // ends gracefully and waits; may be called again
}

// Setting changes the configuration of a Bobbin.
type Setting func(*config.Config)

// New starts a Bobbin on a fresh data folder with the database at url. What
// the settings leave is as by default, with the demonstration model.
func New(t testing.TB, url string, settings ...Setting) *Bobbin {
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
	h := &Bobbin{T: t, HTTP: NewCheckedClient(t), Config: cfg, Log: &Tail{}, Stop: func() {}}
	t.Cleanup(func() {
		h.Stop()
		if t.Failed() {
			t.Logf("the last of the log:\n%s", h.Log)
		}
	})
	h.Start()
	return h
}

// Start builds and serves Bobbin.
func (h *Bobbin) Start() {
	h.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	level := slog.LevelWarn
	if h.Config.Log.Level == "debug" {
		level, h.Log.Most = slog.LevelDebug, 100_000
	}
	logger := slog.New(slog.NewTextHandler(h.Log, &slog.HandlerOptions{Level: level}))
	built, err := app.New(ctx, h.Config, handlers.Build{Version: "test", Program: os.Args[0]}, logger)
	if err != nil {
		cancel()
		h.T.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", h.Config.Addr)
	if err != nil {
		cancel()
		h.T.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- built.Run(ctx, listener) }()
	h.App, h.URL = built, "http://"+listener.Addr().String()
	h.Client = h.NewClient("")
	h.Stop = sync.OnceFunc(func() {
		cancel()
		compare.Error(h.T, "stop", nil, <-ended)
	})
}

// Restart stops Bobbin and starts it again on the same folder and database.
func (h *Bobbin) Restart() {
	h.T.Helper()
	h.Stop()
	h.Start()
}

// NewClient returns a client with a key of its own; empty = none.
func (h *Bobbin) NewClient(key string) *client.Client {
	h.T.Helper()
	return must.Get(client.New(client.Options{URL: h.URL, Key: key, HTTP: h.HTTP}))(h.T)
}

// NewCheckedClient returns a client that fails the test over a request or an answer, an event
// of a stream included, that is not in the OpenAPI document.
func NewCheckedClient(t testing.TB) *http.Client {
	t.Helper()
	d := must.Get(document.Load())(t)
	return &http.Client{Transport: document.NewTransport(t, d, http.DefaultTransport)}
}

// Tail keeps the end of a log. Safe for concurrent use.
type Tail struct {
	mu    sync.Mutex
	lines [][]byte // guarded by mu
	Most  int      // lines that are kept; 0 = tailLines
}

const tailLines = 60

// Write keeps one line.
func (t *Tail) Write(line []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, bytes.Clone(line))
	if len(t.lines) > max(t.Most, tailLines) {
		t.lines = t.lines[1:]
	}
	return len(line), nil
}

// String returns what was kept.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.Join(t.lines, nil))
}

// Main runs the tests of a package, or makes its test program the one that reads documents or
// an MCP server. It does not return.
func Main(m *testing.M) {
	mcptest.Main()
	if len(os.Args) == 3 && os.Args[1] == extract.Command {
		os.Exit(extract.Serve(os.Args[2], os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// NewAsking starts a Bobbin whose agent "careful" may use the calculator when a person
// agrees to each call, the time once somebody agreed in the session, and the history
// freely. The model calls the tools that a message names.
func NewAsking(t testing.TB, url string, settings ...Setting) *Bobbin {
	t.Helper()
	arguments := map[string]string{"calculator": `{"expression": "6*7"}`, "current_time": `{}`, "search_history": `{"query": "bees"}`}
	p := NewProvider(t, provider.Options{Calls: func(r provider.Received) []provider.Call {
		last := r.Messages[len(r.Messages)-1]
		var calls []provider.Call
		for _, word := range strings.Fields(last.Text) {
			if a, ok := arguments[word]; ok && last.Role == "user" {
				calls = append(calls, provider.Call{ID: "call_" + word, Name: word, Arguments: a})
			}
		}
		return calls
	}})
	return New(t, url, append([]Setting{WithModel("house", 32_000, 2048, p), WithAgent("careful", `name: careful
system_prompt: You ask before you act.
tools: [calculator, current_time, search_history]
tool_settings:
  calculator: {approval: always}
  current_time: {approval: first}
`)}, settings...)...)
}

// NewProvider starts a fake provider and stops it after the test.
func NewProvider(t testing.TB, o provider.Options) *provider.Server {
	t.Helper()
	p := must.Get(provider.New(o))(t)
	t.Cleanup(p.Close)
	return p
}

// WithModel adds a model of the provider's; the first one is the default.
func WithModel(name string, window, maxOutput int, p *provider.Server) Setting {
	return func(c *config.Config) {
		c.Models = append(c.Models, config.Model{
			Name: name, Provider: "openai", BaseURL: p.URL, ContextWindow: window, MaxOutputTokens: maxOutput,
		})
		c.DefaultLLM = c.Models[0].Name
	}
}

// WithGrace sets how long work in hand may go on when Bobbin stops.
func WithGrace(d time.Duration) Setting {
	return func(c *config.Config) { c.Limits.ShutdownGrace = d }
}

// WithAgent writes an agent's file.
func WithAgent(name, text string) Setting {
	return func(c *config.Config) {
		if err := os.MkdirAll(c.AgentsDir, 0o700); err != nil {
			panic(err)
		}
		if err := os.WriteFile(filepath.Join(c.AgentsDir, name+".yaml"), []byte(text), 0o600); err != nil {
			panic(err)
		}
	}
}

// Marks are texts that occur nowhere else, one for each place where a user's text
// can be.
type Marks struct {
	Places  []string // in the order of the first use
	ByPlace map[string]string
}

var marks = seed.Fixed(1, 2) //nolint:gochecknoglobals // no two marks of a program are alike

// Of returns the mark of a place. It is one word in every language, and its ending
// alone is told apart, too: an index may keep beginnings only once.
func (m *Marks) Of(place string) string {
	if m.ByPlace == nil {
		m.ByPlace = map[string]string{}
	}
	if m.ByPlace[place] == "" {
		m.Places = append(m.Places, place)
		m.ByPlace[place] = fmt.Sprintf("zq%012x%012x", marks.Uint64()>>16, marks.Uint64()>>16)
	}
	return m.ByPlace[place]
}

// Find returns the places whose marks are in one of the files.
func (m *Marks) Find(t *testing.T, folders []string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			data = bytes.ToLower(data)
			for place, mark := range m.ByPlace {
				if bytes.Contains(data, []byte(mark[len(mark)/2:])) {
					found[place] = path
				}
			}
			return err
		})
		must.Do(t, err)
	}
	return found
}

// Disk is what a Bobbin has stored: its database and all files, which are searched for marks.
type Disk struct {
	*Bobbin

	Database *db.DB
	Folders  []string // where the files are
	Marks    Marks
}

// NewDisk opens the database of a Bobbin, which is at url.
func NewDisk(t testing.TB, h *Bobbin, url string) *Disk {
	t.Helper()
	d := &Disk{Bobbin: h, Database: dbtest.Open(t, url)}
	d.Folders = []string{h.Config.DataDir, d.tables(url)}
	return d
}

// tables returns the folder of the database's files.
func (d *Disk) tables(url string) string {
	d.T.Helper()
	if path, ok := strings.CutPrefix(url, "sqlite://"); ok {
		return filepath.Dir(path)
	}
	var dir, oid string
	d.ReadRow(&dir, "SELECT current_setting('data_directory')")
	d.ReadRow(&oid, "SELECT oid::text FROM pg_database WHERE datname = current_database()")
	return filepath.Join(dir, "base", oid)
}

// ReadRow reads the only value of a query.
func (d *Disk) ReadRow(into any, query string, args ...any) {
	d.T.Helper()
	if err := d.Database.Gorm.WithContext(d.T.Context()).Raw(query, args...).Row().Scan(into); err != nil {
		d.T.Fatalf("%s: %v", query, err)
	}
}

// Exec executes a statement in the database.
func (d *Disk) Exec(stmt string, args ...any) {
	d.T.Helper()
	res := d.Database.Gorm.WithContext(d.T.Context()).Exec(stmt, args...)
	must.True(d.T, res.Error == nil, "%s: %v", stmt, res.Error)
}
