package e2e_test

import (
	"log/slog"
	"strings"
	"testing"

	"bobbin/app/core/config"
	"bobbin/app/ops"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
)

// TestDoctorOfReplicas: two replicas of one name are found.
func TestDoctorOfReplicas(t *testing.T) {
	t.Parallel()
	h := apptest.New(t, dbtest.PostgresURL(t), func(c *config.Config) { c.Replica.Name = "twin" })
	look := func() (found ops.Finding) {
		t.Helper()
		cfg := h.Config
		cfg.DataDir = t.TempDir() // another machine's
		withCluster("127.0.0.1:6222")(&cfg)
		for _, f := range ops.Doctor(t.Context(), ops.DoctorOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler)}).Findings {
			if f.Check == "replica" {
				found = f
			}
		}
		return found
	}
	if f := look(); f.Status != ops.VerdictWarn || !strings.Contains(f.Detail, "has been using it since") {
		t.Errorf("a name that a server has: got %+v, want a warning", f)
	}
	h.Stop()
	compare.Equal(t, "a name that nobody has", ops.VerdictOK, look().Status)
}
