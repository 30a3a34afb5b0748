package e2e_test

import (
	"log/slog"
	"strings"
	"testing"

	"bobbin/app/core/config"
	"bobbin/app/ops"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
)

// TestDoctorOfReplicas: replicas that talk over a network in the clear, and two of one
// name, are found.
func TestDoctorOfReplicas(t *testing.T) {
	t.Parallel()
	look := func(check, cluster string, d *apptest.Bobbin) (found ops.Finding) {
		t.Helper()
		cfg := d.Config
		cfg.DataDir = t.TempDir() // another machine's
		withCluster(cluster)(&cfg)
		for _, f := range ops.Doctor(t.Context(), ops.DoctorOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler)}).Findings {
			if f.Check == check {
				found = f
			}
		}
		return found
	}
	h := apptest.New(t, dbtest.PostgresURL(t), func(c *config.Config) { c.Replica.Name = "twin" })
	if f := look("nats", "0.0.0.0:6222", h); f.Status != ops.VerdictWarn || !strings.Contains(f.Detail, "0.0.0.0:6222 is not encrypted") {
		t.Errorf("a cluster in the clear: got %+v, want a warning", f)
	}
	if f := look("nats", "127.0.0.1:6222", h); f.Status == ops.VerdictWarn {
		t.Errorf("a cluster on this machine: got %+v, want none", f)
	}
	if f := look("replica", "127.0.0.1:6222", h); f.Status != ops.VerdictWarn || !strings.Contains(f.Detail, "has been using it since") {
		t.Errorf("a name that a server has: got %+v, want a warning", f)
	}
	h.Stop()
	if f := look("replica", "127.0.0.1:6222", h); f.Status != ops.VerdictOK {
		t.Errorf("a name that nobody has: got %+v, want none", f)
	}
	secure := h.Config
	withCluster("0.0.0.0:6222")(&secure)
	if secure.NATS.TLSCert = "cert.pem"; secure.NATS.InTheClear() {
		t.Error("a cluster with certificates is not in the clear")
	}
}
