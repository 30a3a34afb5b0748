package logging_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core/config"
	"bobbin/app/core/logging"
	"bobbin/tests/must"
)

// logged returns what the calls write as JSON, without the time.
func logged(t *testing.T, opts logging.Options, calls func(*slog.Logger)) []map[string]any {
	t.Helper()
	var out bytes.Buffer
	log, err := logging.New(&out, opts)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	calls(log)
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
	for level, want := range map[string]int{"": 3, "debug": 4, "info": 3, "warn": 2, "ERROR": 1} {
		got := logged(t, logging.Options{Level: level}, func(log *slog.Logger) {
			log.Debug("one")
			log.Info("two")
			log.Warn("three")
			log.Error("four")
		})
		if len(got) != want {
			t.Errorf("level %q: got %d records, want %d", level, len(got), want)
		}
	}
}

func TestNewFormat(t *testing.T) {
	t.Parallel()
	null := must.Get(os.OpenFile(os.DevNull, os.O_WRONLY, 0))(t)
	t.Cleanup(func() { null.Close() })
	if _, err := logging.New(null, logging.Options{}); err != nil {
		t.Errorf("New on a file: %v", err)
	}
	for format, prefix := range map[string]string{"": "{", "auto": "{", "json": "{", "text": "time="} {
		var out bytes.Buffer
		log, err := logging.New(&out, logging.Options{Format: format})
		if err != nil {
			t.Fatalf("New(%q): %v", format, err)
		}
		log.Info("hello")
		if !strings.HasPrefix(out.String(), prefix) {
			t.Errorf("format %q: got %q, want it to begin with %q", format, &out, prefix)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		opts logging.Options
		want string
	}{
		{logging.Options{Level: "loud"}, `log level "loud" does not exist; use one of debug, info, warn, error`},
		{logging.Options{Level: "info+2"}, `log level "info+2" does not exist; use one of debug, info, warn, error`},
		{logging.Options{Format: "xml"}, `log format "xml" does not exist; use one of auto, text, json`},
	} {
		if _, err := logging.New(&bytes.Buffer{}, tt.opts); err == nil || err.Error() != tt.want {
			t.Errorf("New(%+v): got %v, want %q", tt.opts, err, tt.want)
		}
	}
}

func TestWith(t *testing.T) {
	t.Parallel()
	outer := logging.With(t.Context(), slog.String("request_id", "r1"), slog.String("run_id", "x"))
	inner := logging.With(outer, slog.String("run_id", "y"))
	got := logged(t, logging.Options{}, func(log *slog.Logger) {
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
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if got := len(logging.From(outer)); got != 2 {
		t.Errorf("From(outer) after With(inner): got %d attributes, want 2 untouched", got)
	}
	if got := logging.From(context.Background()); got != nil {
		t.Errorf("From of a bare context: got %v, want none", got)
	}
}

// Every word that the settings take works here.
func TestNewTakesWhatConfigTakes(t *testing.T) {
	t.Parallel()
	for _, level := range config.LogLevels() {
		for _, format := range config.LogFormats() {
			if _, err := logging.New(&bytes.Buffer{}, logging.Options{Level: level, Format: format}); err != nil {
				t.Errorf("level %s, format %s: %v", level, format, err)
			}
		}
	}
}
