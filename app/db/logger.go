package db

import (
	"context"
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
	logger.Interface // logs nothing

	log   *slog.Logger
	count *atomic.Int64
}

// LogMode is part of gorm's interface; slog decides on the level.
func (l *queryLogger) LogMode(logger.LogLevel) logger.Interface { return l }

// Trace is called once for every statement, after it ran.
func (l *queryLogger) Trace(ctx context.Context, begin time.Time, fc func() (string, int64), _ error) {
	l.count.Add(1)
	took := time.Since(begin)
	if took >= slowQuery && l.log.Enabled(ctx, slog.LevelWarn) {
		stmt, rows := fc()
		l.log.WarnContext(ctx, "slow query", "sql", stmt, "rows", rows, "dur", took)
	} else if l.log.Enabled(ctx, slog.LevelDebug) {
		stmt, rows := fc()
		l.log.DebugContext(ctx, "query", "sql", stmt, "rows", rows, "dur", took)
	}
}
