package logging

import (
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"golang.org/x/term"
)

// Formats of the log.
const (
	FormatAuto = "auto" // text on a terminal, else JSON
	FormatText = "text"
	FormatJSON = "json"
)

// Options say what is logged and how. Zero fields are info and auto.
type Options struct {
	Level  string // debug, info, warn or error
	Format string // auto, text or json
}

// Formats returns the words that Options.Format takes.
func Formats() []string { return []string{FormatAuto, FormatText, FormatJSON} }

// Levels returns the words that Options.Level takes.
func Levels() []string { return []string{"debug", "info", "warn", "error"} }

// New returns a logger that writes to w, a line a record. Each line is one Write,
// and the logger is safe for concurrent use.
func New(w io.Writer, opts Options) (*slog.Logger, error) {
	level, err := levelOf(opts.Level)
	if err != nil {
		return nil, err
	}
	text, err := isText(w, opts.Format)
	if err != nil {
		return nil, err
	}
	settings := &slog.HandlerOptions{Level: level, ReplaceAttr: readableDurations}
	if text {
		return slog.New(handler{slog.NewTextHandler(w, settings)}), nil
	}
	return slog.New(handler{slog.NewJSONHandler(w, settings)}), nil
}

// readableDurations gives durations a unit: JSON would have them as bare nanoseconds.
func readableDurations(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// levelOf returns the level of the name; none is info.
func levelOf(name string) (slog.Level, error) {
	if name == "" {
		return slog.LevelInfo, nil
	}
	name = strings.ToLower(name)
	var level slog.Level
	if !slices.Contains(Levels(), name) || level.UnmarshalText([]byte(name)) != nil {
		return 0, fmt.Errorf("log level %q does not exist; use one of %s", name, strings.Join(Levels(), ", "))
	}
	return level, nil
}

// isText reports whether the format means text for this writer.
func isText(w io.Writer, format string) (bool, error) {
	switch strings.ToLower(format) {
	case FormatText:
		return true, nil
	case FormatJSON:
		return false, nil
	case FormatAuto, "":
		return isTerminal(w), nil
	default:
		return false, fmt.Errorf("log format %q does not exist; use one of %s", format, strings.Join(Formats(), ", "))
	}
}

// isTerminal reports whether a person reads what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}
