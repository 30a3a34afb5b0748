package db

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"gorm.io/gorm/logger"
)

// slowQuery is how long a statement may take before it is worth a warning.
const slowQuery = 200 * time.Millisecond

// queryLogger counts statements and tells slog of slow ones. Statements come with
// placeholders, never with values: both dialectors' Explain leaves them out. Errors are not logged here: they
// go up to whoever can say what they mean.
type queryLogger struct {
	logger *slog.Logger
	count  *atomic.Int64
}

// LogMode is part of gorm's interface; the level is slog's business.
func (l *queryLogger) LogMode(logger.LogLevel) logger.Interface { return l }

// Info passes on a remark of gorm's.
func (l *queryLogger) Info(ctx context.Context, msg string, args ...any) {
	l.logger.DebugContext(ctx, "database remark", "text", fmt.Sprintf(msg, args...))
}

// Warn passes on a warning of gorm's.
func (l *queryLogger) Warn(ctx context.Context, msg string, args ...any) {
	l.logger.WarnContext(ctx, "database warning", "text", fmt.Sprintf(msg, args...))
}

// Error passes on what gorm could not return as an error.
func (l *queryLogger) Error(ctx context.Context, msg string, args ...any) {
	l.logger.ErrorContext(ctx, "database error", "text", fmt.Sprintf(msg, args...))
}

// Trace sees every statement once, after it ran.
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
