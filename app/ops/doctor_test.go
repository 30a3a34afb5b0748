package ops_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/ops"
	"bobbin/tests/compare"
	"bobbin/tests/mcptest"
	"bobbin/tests/must"
)

// Doctor warns of what is not encrypted, and of models that a limit in dollars refuses.
func TestDoctorWarns(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.DataDir, cfg.AgentsDir, cfg.Addr = t.TempDir(), filepath.Join(t.TempDir(), "agents"), "127.0.0.1:0"
	cfg.Database.URL = config.NewSecretURL("postgres://bobbin:hush@192.0.2.1:1/bobbin?connect_timeout=1")
	cfg.NATS.URL = config.NewSecretURL("nats://bobbin:hush@nats.example:4222")
	cfg.Models = []config.Model{{Name: "house", Provider: "openai", BaseURL: "http://127.0.0.1:1/v1"}, {Name: "priced", Provider: "openai", BaseURL: "http://127.0.0.1:1/v1", InputPrice: 1}}
	cfg.DefaultLLM, cfg.ContextSummaryModel = "house", "priced"
	cfg.Auth.Limits = []config.SpendLimit{{Key: "web", USDPerDay: 1}, {Key: "report", TokensPerDay: 1}}
	warnings := map[string]string{}
	for _, f := range ops.Doctor(t.Context(), ops.DoctorOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler)}).Findings {
		if f.Status == ops.VerdictWarn {
			warnings[f.Check] += f.Detail + " → " + f.Do
		}
	}
	for check, want := range map[string][]string{
		"database connection": {"nothing proves that PostgreSQL answers", "sslmode=verify-full"},
		"nats":                {"nats://bobbin:***@nats.example:4222 is not encrypted", "nats.tls_ca"},
		"prices":              {"house has no price: it is refused to web (usd_per_day)", "input_price"},
	} {
		for _, part := range want {
			compare.Contains(t, check+": want in it", part, warnings[check])
		}
	}
	compare.True(t, !strings.Contains(warnings["prices"], "priced has") && !strings.Contains(warnings["nats"]+warnings["database connection"], "hush"), "got %v, want no more than that", warnings)
}

// Doctor asks a model's server which models it has: that finds a wrong address, key or name.
func TestDoctorAsksForModels(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch base := strings.TrimSuffix(r.URL.Path, "/models"); {
		case base == "/v1" && r.Header.Get("Authorization") != "Bearer sk-right":
			http.Error(w, `{"error":{"message":"no such key"}}`, http.StatusUnauthorized)
		case base == "/v1":
			_, _ = w.Write([]byte(`{"object":"list","data":[{"id":"llama3:latest"},{"id":"models/flash"}]}`))
		case base == "/none":
			_, _ = w.Write([]byte(`{"data":[{"id":5}]}`))
		case base == "/drip":
			for ; r.Context().Err() == nil; <-time.After(100 * time.Millisecond) {
				_, _ = w.Write([]byte(" "))
				_ = http.NewResponseController(w).Flush()
			}
		case base == "/lmstudio":
			_, _ = w.Write([]byte(`{"error":"Unexpected endpoint or method. (GET /models)"}`))
		case base == "/moved":
			http.Redirect(w, r, "https://u:hush@new.example/v1/models?key=hush", http.StatusPermanentRedirect)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	t.Setenv("OPENAI_API_KEY", "sk-right")
	t.Setenv("OTHER_KEY", "sk-wrong")
	cfg := config.Default()
	cfg.DataDir, cfg.AgentsDir, cfg.Addr, cfg.DefaultLLM = t.TempDir(), filepath.Join(t.TempDir(), "agents"), "127.0.0.1:0", "demo"
	want := map[string]string{}
	for _, c := range []struct{ name, path, model, key, want string }{
		{"listed", "/v1/", "llama3", "", "ok: listed of openai, window 1000"},
		{"listed with its folder", "/v1", "flash", "", "ok: listed with its folder of openai, window 1000"},
		{"no list", "/none", "m", "", "ok: no list of openai, window 1000"},
		{"unlisted", "/v1", "mistral", "", "warn: unlisted: its server does not list mistral; it has llama3:latest, models/flash"},
		{"drip", "/drip", "m", "", "warn: drip: it was not found whether it works: openai: canceled: no list of models within 2s"},
		{"wrong key", "/v1", "llama3", "OTHER_KEY", "fail: wrong key: the server does not accept the key: openai: auth: no such key"},
		{"no v1", "", "llama3", "", "warn: no v1: " + server.URL + "/models is no list of models: openai: not_found: 404 page not found"},
		{"LM Studio", "/lmstudio", "m", "", "warn: LM Studio: " + server.URL + "/lmstudio/models is no list of models: openai: not_found: Unexpected endpoint or method. (GET /models)"},
		{"moved", "/moved", "m", "", "warn: moved: " + server.URL + "/moved/models is no list of models: openai: not_found: it redirects to https://new.example/v1/models"},
	} {
		cfg.Models = append(cfg.Models, config.Model{Name: c.name, Model: c.model, Provider: "openai", BaseURL: server.URL + c.path, APIKeyEnv: c.key, ContextWindow: 1000})
		want["model "+c.name] = c.want
	}
	got := map[string]string{}
	for _, f := range ops.Doctor(t.Context(), ops.DoctorOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler)}).Findings {
		if strings.HasPrefix(f.Check, "model ") {
			got[f.Check] = string(f.Status) + ": " + f.Detail
			compare.True(t, (f.Status == ops.VerdictOK) == (f.Do == ""), "%s: got %q, want what to do about what is wrong", f.Check, f.Do)
		}
	}
	compare.Equal(t, "findings", want, got)
}

func TestMain(m *testing.M) {
	mcptest.Main()
	os.Exit(m.Run())
}

// withServers returns settings whose folder of tools has two MCP servers, of which one cannot start,
// and an agent with them.
func withServers(t *testing.T) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.DataDir, cfg.DefaultLLM = t.TempDir(), "demo"
	cfg.AgentsDir = filepath.Join(cfg.DataDir, "agents")
	program, args := mcptest.Command("")
	for name, text := range map[string]string{
		"tools/good.yaml":  fmt.Sprintf("name: good\nkind: mcp\ncommand: %s\nargs: [%s, %q]\nonly: [echo, write]\napproval: first\n", program, args[0], args[1]),
		"tools/bad.yaml":   "name: bad\nkind: mcp\ncommand: no-such-program\n",
		"agents/mine.yaml": "name: mine\ntools: [good, bad]\n",
	} {
		path := filepath.Join(cfg.DataDir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return cfg
}

// An operator lists MCP servers and their tools without a Bobbin server, once they are allowed.
func TestMCPServers(t *testing.T) {
	t.Parallel()
	cfg := withServers(t)
	if _, err := ops.MCPServers(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "tools of the kind mcp are switched off") {
		t.Errorf("not allowed: got %v", err)
	}
	cfg.Tools.Allow = []string{"mcp"}
	for name := range map[string]bool{"one": true, "two": true} {
		program, args := mcptest.Command("")
		text := fmt.Sprintf("name: %s\ntools: [{name: own, kind: mcp, command: %s, args: [%s, %q], env: [NAME=%s]}]\n", name, program, args[0], args[1], name)
		must.Do(t, os.WriteFile(filepath.Join(cfg.AgentsDir, name+".yaml"), []byte(text), 0o600))
	}
	list, err := ops.MCPServers(t.Context(), cfg)
	must.True(t, err == nil && len(list) == 4 && list[2].Name == "own" && list[3].Name == "own" && list[2].File != list[3].File, "got %+v, %v", list, err)
	bad, good := list[0], list[1]
	compare.True(t, bad.Problem == "the program no-such-program is not installed, or cannot be executed" && good.Problem == "" && len(good.Tools) == 2, "got %+v", list)
	w := good.Tools[1]
	compare.Equal(t, "tool", []any{"good__write", core.ApprovalFirst, "Does write."}, []any{w.Name, w.Approval, w.Description})
}

// What an agent has of the tools of files is in its settings.
func TestAgentShowsTools(t *testing.T) {
	t.Parallel()
	cfg := withServers(t)
	cfg.Tools.Allow = []string{"mcp"}
	files := must.Get(ops.OpenAgentFiles(t.Context(), cfg))(t)
	fields := must.Get(files.Settings(t.Context(), "mine"))(t)
	shown := map[string]string{}
	for _, f := range fields {
		shown[f.Key] = f.Value
	}
	compare.True(t, shown["tools"] == "good, bad" && shown["tools.good"] == "good__echo, good__write" && strings.HasPrefix(shown["tools.bad"], "not available: the program no-such-program"), "got %v", shown)
	list := must.Get(files.Check(nil))(t)
	compare.True(t, len(list) > 3 && list[0].Tool == "bad" && list[0].Usable && list[2].Agent == "mine", "got %+v", list)
}

// An operator hears of tools that models do not get: of those that files name without a connection,
// and of those that servers list from doctor with calls.
func TestTooManyTools(t *testing.T) {
	t.Parallel()
	cfg := withServers(t)
	cfg.Tools.Allow, cfg.Addr = []string{"mcp"}, "127.0.0.1:0"
	program, args := mcptest.Command("many")
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprintf("t%d", i)
	}
	server := fmt.Sprintf("kind: mcp, command: %s, args: [%s, %q]", program, args[0], args[1])
	for name, only := range map[string]string{"listed": "", "named": ", only: [" + strings.Join(names, ", ") + "]"} {
		text := fmt.Sprintf("name: %s\ntools:\n  - {name: a, %s%s}\n  - {name: b, %s%s}\n", name, server, only, server, only)
		must.Do(t, os.WriteFile(filepath.Join(cfg.AgentsDir, name+".yaml"), []byte(text), 0o600))
	}
	files := must.Get(ops.OpenAgentFiles(t.Context(), cfg))(t)
	list := must.Get(files.Check(nil))(t)
	for _, f := range list {
		compare.Equal(t, "check: "+f.File, f.Agent == "named", strings.Contains(strings.Join(f.Warnings, "; "), "it has at least 200 tools, and models get 128"))
	}
	warned := map[string]string{}
	for _, f := range ops.Doctor(t.Context(), ops.DoctorOptions{Config: cfg, Call: true, Logger: slog.New(slog.DiscardHandler)}).Findings {
		if strings.Contains(f.Detail, "and models get 128") {
			warned[f.Check] += f.Detail
		}
	}
	if len(warned) != 4 || warned["tool a"] != tools.TooMany(304) || !strings.HasPrefix(warned["agent listed"], "it has ") || strings.Count(warned["agent named"], "it has") != 1 {
		t.Errorf("doctor: got %q, want one warning for each agent, and for each server", warned)
	}
}
