package logging

import (
	"context"
	"log/slog"
	"slices"
)

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
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name)}
}
