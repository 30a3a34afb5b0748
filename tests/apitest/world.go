package apitest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"bobbin/app"
	"bobbin/app/api"
	"bobbin/app/api/auth"
	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/extract"
	"bobbin/tests/logtext"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// World is an application that runs, without a listener.
type World struct {
	*app.App
	Options api.Options // of a server over it, open to this machine; as a test wants it
	Log     *logtext.Log
	Hooks   map[string]Hook // by what the parts call, such as "Sessions.Get"; set before the first request
}

// Hook runs before a part does what it is asked for; its error replaces the answer.
type Hook func(ctx context.Context) error

// sample is what all worlds begin with.
//
//nolint:gochecknoglobals // one database and one model for all tests of a process are the point
var (
	folder string // of the database that worlds copy
	model  *provider.Server
	gates  sync.Map // by their names: channels that are closed when questions with the name are answered
)

// Main fills the database that worlds copy and runs the tests of a package. It does not return.
func Main(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == extract.Command {
		os.Exit(extract.Serve(os.Args[2], os.Stdin, os.Stdout))
	}
	err := fill()
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "no sample:", err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// Gate returns a word: who asks with it in the question is answered after open.
func Gate(t testing.TB) (word string, open func()) {
	t.Helper()
	word, gate := "gate-"+core.NewID[string](), make(chan struct{})
	gates.Store(word, gate)
	open = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(open)
	return word, open
}

// New returns a world of its own. The settings change its configuration.
func New(t testing.TB, settings ...func(*config.Config)) *World {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS(folder)))
	a, log, stop, err := start(dir, settings...)
	must.Do(t, err)
	t.Cleanup(func() { must.Do(t, stop()) })
	w := &World{App: a, Log: log, Hooks: map[string]Hook{}, Options: a.API()}
	w.Options.Services = w.hooked(w.Options.Services)
	w.Options.Limits = api.DefaultLimits()
	w.Options.Auth, w.Options.Work, w.Options.Space = auth.New(auth.Options{}), nil, handlers.Space{}
	w.Options.Build = handlers.Build{Version: "1.2.3", Commit: "abc1234", Date: "2026-01-02T03:04:05Z", Go: "go1.26"}
	<-w.Options.Ready
	w.Options.Ready = nil
	return w
}

// start runs an application on the data folder.
func start(dir string, settings ...func(*config.Config)) (a *app.App, log *logtext.Log, stop func() error, err error) {
	cfg := config.Default()
	cfg.DataDir, cfg.AgentsDir = dir, filepath.Join(dir, "agents")
	cfg.Database.URL = config.NewSecretURL("sqlite://" + filepath.Join(dir, "bobbin.db"))
	cfg.Models = []config.Model{{Name: "house", Provider: "openai", BaseURL: model.URL, ContextWindow: 32_000, MaxOutputTokens: 1000}}
	cfg.DefaultLLM, cfg.Titles, cfg.Limits.ShutdownGrace = "house", false, 1
	for _, set := range settings {
		set(&cfg)
	}
	log = &logtext.Log{}
	ctx, cancel := context.WithCancel(context.Background())
	a, err = app.New(ctx, cfg, handlers.Build{Version: "test", Program: os.Args[0]}, slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		cancel()
		return nil, nil, nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx, nobody(make(chan struct{}))) }()
	return a, log, func() error { cancel(); return <-ended }, nil
}

// nobody is a listener to whom nobody comes, so that time is that of a test's bubble.
type nobody chan struct{}

func (n nobody) Accept() (net.Conn, error) { <-n; return nil, net.ErrClosed }
func (n nobody) Close() error              { close(n); return nil }
func (n nobody) Addr() net.Addr            { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

// startModel starts the model of all worlds. It calls the calculator for a question with its name.
func startModel() (err error) {
	model, err = provider.New(provider.Options{
		Bare: true, Say: func(string) string { return "Hi <there>" },
		Hold: func(question string) {
			for word := range strings.FieldsSeq(question) {
				if gate, ok := gates.Load(word); ok {
					<-gate.(chan struct{})
				}
			}
		},
		Calls: func(r provider.Received) []provider.Call {
			if last := r.Messages[len(r.Messages)-1]; last.Role == "user" && strings.Contains(last.Text, "calculator") {
				return []provider.Call{{ID: "call-1", Name: "calculator", Arguments: `{"expression": "6*7"}`}}
			}
			return nil
		},
	})
	return err
}

// fill makes the database that worlds copy.
func fill() (err error) {
	if folder, err = os.MkdirTemp("", "bobbin-apitest-"); err != nil {
		return err
	}
	if err := startModel(); err != nil {
		return err
	}
	agents := filepath.Join(folder, "agents")
	careful := "name: careful\nsystem_prompt: You ask before you act.\ntools: [calculator]\ntool_settings:\n  calculator: {approval: always}\n"
	if err := errors.Join(os.Mkdir(agents, 0o700), os.WriteFile(filepath.Join(agents, "careful.yaml"), []byte(careful), 0o600)); err != nil {
		return err
	}
	a, _, stop, err := start(folder)
	if err != nil {
		return err
	}
	opts := a.API()
	opts.Auth = auth.New(auth.Options{})
	return errors.Join(talk(api.New(opts)), stop())
}
