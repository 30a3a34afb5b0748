package db

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"gorm.io/gorm/logger"
)

// slowQuery is the duration from which a statement is logged as slow.
const slowQuery = 200 * time.Millisecond

// queryLogger counts statements and logs slow ones, with placeholders and never with
// values: both dialectors' Explain leaves them out. It does not log errors, which are
// returned to callers with more context.
type queryLogger struct {
	logger *slog.Logger
	count  *atomic.Int64
}

// LogMode is part of gorm's interface; slog decides on the level.
func (l *queryLogger) LogMode(logger.LogLevel) logger.Interface { return l }

// Info logs a remark of gorm.
func (l *queryLogger) Info(ctx context.Context, msg string, args ...any) {
	l.logger.DebugContext(ctx, "database remark", "text", fmt.Sprintf(msg, args...))
}

// Warn logs a warning of gorm.
func (l *queryLogger) Warn(ctx context.Context, msg string, args ...any) {
	l.logger.WarnContext(ctx, "database warning", "text", fmt.Sprintf(msg, args...))
}

// Error logs what gorm could not return as an error.
func (l *queryLogger) Error(ctx context.Context, msg string, args ...any) {
	l.logger.ErrorContext(ctx, "database error", "text", fmt.Sprintf(msg, args...))
}

// Trace is called once for every statement, after it ran.
func (l *queryLogger) Trace(ctx context.Context, begin time.Time, fc func() (string, int64), _ error) {
	l.count.Add(1)
	took := time.Since(begin)
	if took >= slowQuery && l.logger.Enabled(ctx, slog.LevelWarn) {
		stmt, rows := fc()
		l.logger.WarnContext(ctx, "slow query", "sql", stmt, "rows", rows, "dur", took)
	} else if l.logger.Enabled(ctx, slog.LevelDebug) {
		stmt, rows := fc()
		l.logger.DebugContext(ctx, "query", "sql", stmt, "rows", rows, "dur", took)
	}
}
