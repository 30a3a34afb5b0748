package app

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"bobbin/app/core/config"
	"bobbin/app/core/tokens"
	"bobbin/app/wire"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// Where nobody configured it, the number of runs suits the machine, and who asks for more than it can
// have open files for is warned.
func TestFitRuns(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	got := fitRuns(config.Limits{}, logger).ConcurrentRuns
	compare.True(t, got >= 1 && got <= mostRuns, "got %d runs, want 1 to %d", got, mostRuns)
	compare.Equal(t, "runs: want the configured 7", 7, fitRuns(config.Limits{ConcurrentRuns: 7}, logger).ConcurrentRuns)
	log.Reset()
	if fitRuns(config.Limits{ConcurrentRuns: maxOpenFiles()}, logger); !strings.Contains(log.String(), "few open files") {
		t.Errorf("got the log %q, want a warning", log.String())
	}
}

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
	rows := must.Get(a.Stores.Calibrations.All(t.Context()))(t)
	compare.True(t, len(rows) == 1 && rows[0].Samples == 1, "got %+v, want the sample of house", rows)
}
