package ops_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

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
