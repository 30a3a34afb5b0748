package e2e_test

import (
	"net/http"
	"testing"

	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
)

// A run that ends within the grace period of a shutdown has measured its model: the next start knows it.
func TestShutdownKeepsCalibration(t *testing.T) {
	t.Parallel()
	p, g := newHolding(t)
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 8192, 2048, p))
	id, _ := held(t, h, g)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		h.Stop()
	}()
	awaitReadiness(t, h, http.StatusServiceUnavailable, "")
	g.open()
	<-stopped
	h.Start()
	if got := report(t, h.Client, id).Calibration.Samples; got != 1 {
		t.Errorf("got %d samples after the restart, want that of the run", got)
	}
}
