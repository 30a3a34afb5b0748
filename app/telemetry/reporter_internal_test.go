package telemetry

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"bobbin/tests/compare"
)

// flaky is an exporter that fails while err is set.
type flaky struct {
	sdktrace.SpanExporter
	err error
}

func (f *flaky) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return f.err }

// An unreachable receiver is logged once, and again when it is back; OpenTelemetry gets no
// error, as it would print it to standard error.
func TestReporter(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	to := &flaky{}
	r := &reporter{SpanExporter: to, log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, err := range []error{nil, errors.New("away"), errors.New("away"), nil, nil, errors.New("away")} {
		to.err = err
		compare.Error(t, "r.ExportSpans(t.Context(), nil)", nil, r.ExportSpans(t.Context(), nil))
	}
	if lost, back := strings.Count(log.String(), "traces not sent"), strings.Count(log.String(), "traces are sent again"); lost != 2 || back != 1 {
		t.Errorf("told %d times of the loss and %d times of the return, want 2 and 1: %s", lost, back, log.String())
	}
}
