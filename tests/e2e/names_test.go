package e2e_test

import (
	"log/slog"
	"strings"
	"testing"

	"bobbin/app"
	"bobbin/app/core/config"
	"bobbin/app/db/dbtest"
)

// TestDoctorOfReplicas: replicas that talk over a network in the clear, and two of one
// name, are found.
func TestDoctorOfReplicas(t *testing.T) {
	t.Parallel()
	look := func(check, cluster string, d *house) (found app.Finding) {
		t.Helper()
		cfg := d.cfg
		cfg.DataDir = t.TempDir() // another machine's
		withCluster(cluster)(&cfg)
		for _, f := range app.Doctor(t.Context(), app.DoctorOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler)}).Findings {
			if f.Check == check {
				found = f
			}
		}
		return found
	}
	h := newHouse(t, dbtest.PostgresURL(t), func(c *config.Config) { c.Replica.Name = "twin" })
	if f := look("nats", "0.0.0.0:6222", h); f.Status != app.VerdictWarn || !strings.Contains(f.Detail, "0.0.0.0:6222 is not encrypted") {
		t.Errorf("a cluster in the clear: got %+v, want a warning", f)
	}
	if f := look("nats", "127.0.0.1:6222", h); f.Status == app.VerdictWarn {
		t.Errorf("a cluster on this machine: got %+v, want none", f)
	}
	if f := look("replica", "127.0.0.1:6222", h); f.Status != app.VerdictWarn || !strings.Contains(f.Detail, "has it since") {
		t.Errorf("a name that a server has: got %+v, want a warning", f)
	}
	h.stop()
	if f := look("replica", "127.0.0.1:6222", h); f.Status != app.VerdictOK {
		t.Errorf("a name that nobody has: got %+v, want none", f)
	}
	secure := h.cfg
	withCluster("0.0.0.0:6222")(&secure)
	if secure.NATS.TLSCert = "cert.pem"; secure.NATS.InTheClear() {
		t.Error("a cluster with certificates is not in the clear")
	}
}
