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

// queryLogger counts statements and tells slog of slow ones. Statements are
// logged with placeholders, never with values. Errors are not logged here: they
// go up to whoever can say what they mean.
type queryLogger struct {
	logger *slog.Logger
	count  *atomic.Int64
}

// ParamsFilter keeps the values out of every log line.
func (*queryLogger) ParamsFilter(_ context.Context, stmt string, _ ...any) (string, []any) {
	return stmt, nil
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
	level, msg := slog.LevelDebug, "query"
	if took >= slowQuery {
		level, msg = slog.LevelWarn, "slow query"
	}
	if !l.logger.Enabled(ctx, level) {
		return
	}
	stmt, rows := fc()
	l.logger.LogAttrs(ctx, level, msg,
		slog.String("sql", stmt), slog.Int64("rows", rows), slog.Duration("dur", took))
}
