package ops_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bobbin/app/core/config"
	"bobbin/app/ops"
	"bobbin/tests/compare"
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
