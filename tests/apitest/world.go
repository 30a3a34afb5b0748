// Package apitest is the application behind the API without a network: each world has its own copy of one
// database, so that the ids in it are the same in all worlds of a process.
package apitest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"bobbin/app"
	"bobbin/app/api"
	"bobbin/app/api/auth"
	"bobbin/app/api/handlers"
	"bobbin/app/chat"
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

// call runs the hook of what a part is asked for.
func (w *World) call(ctx context.Context, name string) error {
	if hook := w.Hooks[name]; hook != nil {
		return hook(ctx)
	}
	return nil
}

// hooked returns the services with the world's hooks before their parts.
func (w *World) hooked(s handlers.Services) handlers.Services {
	s.Sessions, s.Messages, s.Runs, s.Search = sessions{s.Sessions, w}, messages{s.Messages, w}, runs{s.Runs, w}, search{s.Search, w}
	o := s.Chat.Options
	o.Sessions, o.Runs, o.Events = s.Sessions, s.Runs, events{o.Events, w}
	s.Chat = chat.New(o)
	return s
}

type sessions struct {
	core.SessionStore
	w *World
}

func (s sessions) Get(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.Session, error) {
	if err := s.w.call(ctx, "Sessions.Get"); err != nil {
		return core.Session{}, err
	}
	return s.SessionStore.Get(ctx, tenant, id)
}

func (s sessions) List(ctx context.Context, tenant core.Tenant, q core.SessionQuery) (core.Page[core.Session], error) {
	if err := s.w.call(ctx, "Sessions.List"); err != nil {
		return core.Page[core.Session]{}, err
	}
	return s.SessionStore.List(ctx, tenant, q)
}

func (s sessions) Create(ctx context.Context, in core.Session) (core.Session, error) {
	if err := s.w.call(ctx, "Sessions.Create"); err != nil {
		return core.Session{}, err
	}
	return s.SessionStore.Create(ctx, in)
}

type messages struct {
	core.MessageStore
	w *World
}

func (m messages) List(ctx context.Context, tenant core.Tenant, session core.SessionID, q core.MessageQuery) (core.Page[core.Message], error) {
	page, err := m.MessageStore.List(ctx, tenant, session, q)
	return page, cmp.Or(m.w.call(ctx, "Messages.List"), err)
}

type runs struct {
	core.RunStore
	w *World
}

func (r runs) Get(ctx context.Context, tenant core.Tenant, id core.RunID) (core.Run, error) {
	if err := r.w.call(ctx, "Runs.Get"); err != nil {
		return core.Run{}, err
	}
	return r.RunStore.Get(ctx, tenant, id)
}

func (r runs) Pending(ctx context.Context, tenant core.Tenant, session core.SessionID) ([]core.Run, error) {
	list, err := r.RunStore.Pending(ctx, tenant, session)
	return list, cmp.Or(r.w.call(ctx, "Runs.Pending"), err)
}

func (r runs) Accept(ctx context.Context, tenant core.Tenant, in core.AcceptRun) (core.Accepted, error) {
	if err := r.w.call(ctx, "Runs.Accept"); err != nil {
		return core.Accepted{}, err
	}
	return r.RunStore.Accept(ctx, tenant, in)
}

func (r runs) RequestCancel(ctx context.Context, tenant core.Tenant, id core.RunID) (core.Run, []core.Event, error) {
	if err := r.w.call(ctx, "Runs.RequestCancel"); err != nil {
		return core.Run{}, nil, err
	}
	run, events, err := r.RunStore.RequestCancel(ctx, tenant, id)
	return run, events, cmp.Or(r.w.call(ctx, "Runs.CancelRequested"), err)
}

type search struct {
	core.SearchStore
	w *World
}

func (s search) Messages(ctx context.Context, tenant core.Tenant, q core.SearchQuery) (core.SearchPage, error) {
	if err := s.w.call(ctx, "Search.Messages"); err != nil {
		return core.SearchPage{}, err
	}
	return s.SearchStore.Messages(ctx, tenant, q)
}

type events struct {
	core.EventStore
	w *World
}

func (e events) Last(ctx context.Context, tenant core.Tenant, session core.SessionID) (int64, error) {
	n, err := e.EventStore.Last(ctx, tenant, session)
	return n, cmp.Or(e.w.call(ctx, "Events.Last"), err)
}

// What all worlds have, of the local owner: a session with two turns and a summary, one whose run waits for an
// approval, a memory, a file and an instruction.
//
//nolint:gochecknoglobals // set once, by Main
var (
	SessionID     string
	UserID        string // the first message
	AnswerID      string
	RunID         string // it has ended
	WaitingID     string
	WaitingRunID  string
	ApprovalID    string
	MemoryID      string
	BlobID        string
	InstructionID string
)

// An id that nothing has, and the file of the sample.
const (
	MissingID = "01920000-0000-7000-8000-00000000dead"
	Content   = "a,b\r\n1,2\r\n" // of the file
	FormType  = "multipart/form-data; boundary=x"
)

// Form is a form with one field and a file.
func Form(field, value string) string {
	return strings.Join([]string{
		"--x", `Content-Disposition: form-data; name="` + field + `"`, "", value,
		"--x", `Content-Disposition: form-data; name="file"; filename="numbers.csv"`, "Content-Type: text/html", "", Content + "--x--", "",
	}, "\r\n")
}

// Request returns a request as a program on this machine sends it. Each header is
// "Name: value"; a body is JSON unless a header says otherwise.
func Request(method, path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, path, nil)
	if body != "" {
		r = httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
	}
	r.Host, r.RemoteAddr = "localhost:8080", "127.0.0.1:40000"
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	return r
}

// Do answers the request.
func Do(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// talk makes the sample.
func talk(server http.Handler) (err error) {
	ask := func(method, path, body string) map[string]any {
		w := Do(server, Request(method, "/api/v1"+path, body, "Content-Type: "+map[bool]string{true: FormType, false: "application/json"}[path == "/blobs"]))
		answer := map[string]any{}
		if failed := json.Unmarshal(w.Body.Bytes(), &answer); err == nil && (failed != nil || w.Code > 299) {
			err = fmt.Errorf("%s %s: got %d %s", method, path, w.Code, w.Body)
		}
		return answer
	}
	// id returns a value of an answer.
	id := func(answer map[string]any, names ...string) string {
		for _, name := range names {
			if list, ok := answer[name].([]any); ok && len(list) > 0 {
				answer[name] = list[0]
			}
			if inner, ok := answer[name].(map[string]any); ok {
				answer = inner
			} else {
				text, _ := answer[name].(string)
				return text
			}
		}
		return ""
	}
	SessionID = id(ask("POST", "/sessions", `{"title":"Greetings","user_id":"kim","timezone":"Europe/Vienna","metadata":{"team":"a"}}`), "id")
	at := "/sessions/" + SessionID
	answer := ask("POST", at+"/messages", `{"content":"Hello","client_message_id":"c-1"}`)
	RunID, UserID, AnswerID = id(answer, "run", "id"), id(answer, "run", "user_message_id"), id(answer, "message", "id")
	ask("POST", at+"/messages", `{"content":"`+strings.Repeat("And then? ", 40)+`"}`)
	ask("POST", at+"/summarize", "")
	InstructionID = id(ask("POST", at+"/standing-instructions", `{"text":"Be brief."}`), "id")
	WaitingID = id(ask("POST", "/sessions", `{"agent":"careful"}`), "id")
	answer = ask("POST", "/sessions/"+WaitingID+"/messages", `{"content":"Use the calculator."}`)
	WaitingRunID, ApprovalID = id(answer, "run", "id"), id(answer, "run", "approvals", "id")
	MemoryID = id(ask("POST", "/memories", `{"content":"The inspection is on Friday."}`), "id")
	BlobID = id(ask("POST", "/blobs", Form("session_id", SessionID)), "id")
	if err == nil && (ApprovalID == "" || AnswerID == "" || !core.ValidID(BlobID)) {
		err = fmt.Errorf("something is missing in the sample: %q %q %q", ApprovalID, AnswerID, BlobID)
	}
	return err
}
