// Package logging sets up log/slog: text for people on a terminal, JSON for
// machines, and attributes that travel in a context.
//
// New is called once; the *slog.Logger is passed on from there. With puts an
// attribute such as request_id into a context, and every InfoContext below it
// carries it.
package logging

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/term"

	"bobbin/app/core"
)

// New returns a logger that writes to w, a line a record. Level and format are words of log.level and log.format.
// Each line is one Write, and the logger is safe for concurrent use.
func New(w io.Writer, level, format string) *slog.Logger {
	var least slog.Level
	_ = least.UnmarshalText([]byte(level)) // the settings are valid
	settings := &slog.HandlerOptions{Level: least, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch v := a.Value.Any().(type) {
		case time.Duration: // with a unit: JSON would have bare nanoseconds
			a.Value = slog.StringValue(v.String())
		case core.RunID: // ids are texts, which need no encoder
			a.Value = slog.StringValue(string(v))
		case core.SessionID:
			a.Value = slog.StringValue(string(v))
		}
		return a
	}}
	f, ok := w.(interface{ Fd() uintptr })
	isTerminal := ok && term.IsTerminal(int(f.Fd()))
	if format == "text" || format == "auto" && isTerminal {
		return slog.New(handler{slog.NewTextHandler(w, settings)})
	}
	return slog.New(handler{slog.NewJSONHandler(w, settings)})
}

type attrsKey struct{}

// With returns a context whose log records carry the attributes, besides those
// that ctx has. One of the same key replaces the older.
func With(ctx context.Context, attrs ...slog.Attr) context.Context {
	all := slices.Clone(From(ctx))
	for _, a := range attrs {
		all = slices.DeleteFunc(all, func(b slog.Attr) bool { return a.Key == b.Key })
		all = append(all, a)
	}
	return context.WithValue(ctx, attrsKey{}, all)
}

// From returns the attributes that With put into ctx, such as for work that is
// detached from a request but belongs to it. They must not be changed.
func From(ctx context.Context) []slog.Attr {
	attrs, _ := ctx.Value(attrsKey{}).([]slog.Attr)
	return attrs
}

// handler adds the context's attributes to every record.
type handler struct{ slog.Handler }

// Handle writes the record with the context's attributes, but for those that the
// record says itself.
func (h handler) Handle(ctx context.Context, record slog.Record) error {
	attrs := From(ctx)
	if len(attrs) == 0 {
		return h.Handler.Handle(ctx, record)
	}
	own := map[string]bool{}
	record.Attrs(func(a slog.Attr) bool {
		own[a.Key] = true
		return true
	})
	record = record.Clone()
	for _, a := range attrs {
		if !own[a.Key] {
			record.AddAttrs(a)
		}
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs keeps the context's attributes in loggers made by Logger.With.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps them in loggers made by Logger.WithGroup, within the group.
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
