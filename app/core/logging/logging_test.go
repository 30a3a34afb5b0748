package logging_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"bobbin/app/core/logging"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// logged returns what the calls write as JSON, without the time.
func logged(t *testing.T, level string, calls func(*slog.Logger)) []map[string]any {
	t.Helper()
	var out bytes.Buffer
	calls(logging.New(&out, level, "json"))
	var records []map[string]any
	for line := range strings.Lines(out.String()) {
		record := map[string]any{}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("line %q is not JSON: %v", line, err)
		}
		delete(record, "time")
		records = append(records, record)
	}
	return records
}

func TestNewLevel(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]int{"debug": 4, "info": 3, "warn": 2, "error": 1} {
		got := logged(t, level, func(log *slog.Logger) {
			log.Debug("one")
			log.Info("two")
			log.Warn("three")
			log.Error("four")
		})
		compare.Equal(t, fmt.Sprintf("level %q: records", level), want, len(got))
	}
}

func TestNewFormat(t *testing.T) {
	t.Parallel()
	null := must.Get(os.OpenFile(os.DevNull, os.O_WRONLY, 0))(t)
	t.Cleanup(func() { null.Close() })
	logging.New(null, "info", "auto").Info("a file that is no terminal")
	for format, prefix := range map[string]string{"auto": "{", "json": "{", "text": "time="} {
		var out bytes.Buffer
		logging.New(&out, "info", format).Info("hello")
		compare.True(t, strings.HasPrefix(out.String(), prefix), "format %q: got %q, want it to begin with %q", format, &out, prefix)
	}
}

func TestWith(t *testing.T) {
	t.Parallel()
	outer := logging.With(t.Context(), slog.String("request_id", "r1"), slog.String("run_id", "x"))
	inner := logging.With(outer, slog.String("run_id", "y"))
	got := logged(t, "info", func(log *slog.Logger) {
		log.InfoContext(t.Context(), "none")
		log.InfoContext(outer, "outer")
		log.InfoContext(inner, "inner", "dur", 3*time.Millisecond)
		log.InfoContext(inner, "own", "run_id", "z")
		log.With("part", "api").InfoContext(inner, "derived")
		log.WithGroup("g").InfoContext(inner, "grouped")
	})
	want := []map[string]any{
		{"level": "INFO", "msg": "none"},
		{"level": "INFO", "msg": "outer", "request_id": "r1", "run_id": "x"},
		{"level": "INFO", "msg": "inner", "request_id": "r1", "run_id": "y", "dur": "3ms"},
		{"level": "INFO", "msg": "own", "request_id": "r1", "run_id": "z"},
		{"level": "INFO", "msg": "derived", "request_id": "r1", "run_id": "y", "part": "api"},
		{"level": "INFO", "msg": "grouped", "g": map[string]any{"request_id": "r1", "run_id": "y"}},
	}
	compare.Equal(t, "records", want, got)
	compare.Equal(t, "From(outer) after With(inner): attributes: want untouched", 2, len(logging.From(outer)))
	if got := logging.From(context.Background()); got != nil {
		t.Errorf("From of a bare context: got %v, want none", got)
	}
}
