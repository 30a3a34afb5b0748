package logging

import (
	"io"
	"log/slog"
	"time"

	"golang.org/x/term"

	"bobbin/app/core"
)

// New returns a logger that writes to w, a line a record. Level and format are words of log.level and log.format.
// Each line is one Write, and the logger is safe for concurrent use.
func New(w io.Writer, level, format string) *slog.Logger {
	var least slog.Level
	_ = least.UnmarshalText([]byte(level)) // the settings are valid
	settings := &slog.HandlerOptions{Level: least, ReplaceAttr: readableValues}
	f, ok := w.(interface{ Fd() uintptr })
	isTerminal := ok && term.IsTerminal(int(f.Fd()))
	if format == "text" || format == "auto" && isTerminal {
		return slog.New(handler{slog.NewTextHandler(w, settings)})
	}
	return slog.New(handler{slog.NewJSONHandler(w, settings)})
}

// readableValues gives durations a unit, which JSON would have as bare nanoseconds. Ids are texts, which need no encoder.
func readableValues(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case time.Duration:
		a.Value = slog.StringValue(v.String())
	case core.RunID:
		a.Value = slog.StringValue(string(v))
	case core.SessionID:
		a.Value = slog.StringValue(string(v))
	}
	return a
}
