package app

import (
	"context"
	"log/slog"
	"testing"

	"bobbin/app/core/tokens"
	"bobbin/app/wire"
	"bobbin/tests/dbtest"
)

// A save that has begun ends also when the server is stopped: its measurements are in no later one.
func TestSaveCalibrationIsNotInterrupted(t *testing.T) {
	t.Parallel()
	a := &App{Deps: wire.Deps{
		Logger: slog.New(slog.DiscardHandler), Stores: wire.NewStores(dbtest.SQLite(t)),
		Models: wire.Models{Calibrator: tokens.NewCalibrator(func(string) float64 { return 1 })},
	}}
	a.Models.Calibrator.Observe("house", "", 1000, 1100)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.saveCalibration(ctx)
	rows, err := a.Stores.Calibrations.All(t.Context())
	if err != nil || len(rows) != 1 || rows[0].Samples != 1 {
		t.Errorf("got %+v, %v, want the sample of house", rows, err)
	}
}
