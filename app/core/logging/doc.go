// Package logging sets up log/slog: text for people on a terminal, JSON for
// machines, and attributes that travel in a context.
//
// New is called once; the *slog.Logger is passed on from there. With puts an
// attribute such as request_id into a context, and every InfoContext below it
// carries it.
package logging
