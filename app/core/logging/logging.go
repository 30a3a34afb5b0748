package logging

import (
	"io"
	"log/slog"

	"golang.org/x/term"
)

// New returns a logger that writes to w, a line a record. Level and format are words of log.level and log.format.
// Each line is one Write, and the logger is safe for concurrent use.
func New(w io.Writer, level, format string) *slog.Logger {
	var least slog.Level
	_ = least.UnmarshalText([]byte(level)) // the settings are valid
	settings := &slog.HandlerOptions{Level: least, ReplaceAttr: readableDurations}
	if format == "text" || format == "auto" && isTerminal(w) {
		return slog.New(handler{slog.NewTextHandler(w, settings)})
	}
	return slog.New(handler{slog.NewJSONHandler(w, settings)})
}

// readableDurations gives durations a unit: JSON would have them as bare nanoseconds.
func readableDurations(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// isTerminal reports whether a person reads what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}
