package app

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"bobbin/app/core/config"
)

// Where nobody configured it, the number of runs suits the machine, and who asks for more than it can
// have open files for is warned.
func TestFitRuns(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	if got := fitRuns(config.Limits{}, logger).ConcurrentRuns; got < 1 || got > mostRuns {
		t.Errorf("got %d runs, want 1 to %d", got, mostRuns)
	}
	if got := fitRuns(config.Limits{ConcurrentRuns: 7}, logger).ConcurrentRuns; got != 7 {
		t.Errorf("got %d runs, want the configured 7", got)
	}
	log.Reset()
	if fitRuns(config.Limits{ConcurrentRuns: maxOpenFiles()}, logger); !strings.Contains(log.String(), "few open files") {
		t.Errorf("got the log %q, want a warning", log.String())
	}
}
