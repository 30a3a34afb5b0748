package app

import (
	"context"
	"time"

	"bobbin/app/core"
)

// How often what was learned about the models' counting is saved, and how long a save may take.
const (
	calibrationInterval = 10 * time.Second
	calibrationSaveTime = 5 * time.Second
)

// saveCalibration saves what was learned about the models' counting since the last save. The end of ctx does not
// interrupt it: what was handed out by Changed would be lost. What is lost in a crash is learned again in a few calls.
func (a *App) saveCalibration(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), calibrationSaveTime)
	defer cancel()
	rows := a.Models.Calibrator.Changed()
	if len(rows) == 0 {
		return
	}
	if err := a.Stores.Calibrations.Save(ctx, rows); err != nil {
		a.Logger.WarnContext(ctx, "calibration not saved", "err", err)
	}
}

// How long the indexing of messages waits when all are indexed, at most if nothing happens in the
// database, and after an error; how often it reports the progress of a backlog.
const (
	indexInterval = 400 * time.Millisecond
	indexMaxWait  = 10 * time.Second
	indexRetry    = 5 * time.Second
	indexLog      = 10 * time.Second
	indexBacklog  = 1_000 // messages
)

// indexMessages makes messages searchable that were stored since the last look. Searches read
// directly what is not indexed yet.
func (a *App) indexMessages(ctx context.Context) error {
	begin, reported, total := time.Now(), time.Now(), 0
	idle, until := int64(-1), time.Time{}
	return core.Repeat(ctx, nil, func(ctx context.Context) time.Duration {
		before, start := a.Database.Statements(), time.Now()
		if before <= idle && start.Before(until) { // an idle server asks nothing
			return indexInterval
		}
		n, done, err := a.Stores.Search.IndexNext(ctx)
		total += n
		switch {
		case ctx.Err() != nil:
		case err != nil:
			a.Logger.WarnContext(ctx, "messages not indexed", "err", err)
			return indexRetry
		case done:
			if total > indexBacklog {
				a.Logger.InfoContext(ctx, "backlog of messages indexed", "messages", total, "dur", time.Since(begin))
			}
			begin, reported, total = time.Now(), time.Now(), 0
			if n == 0 {
				idle, until = before+1, start.Add(indexMaxWait) // IndexNext has asked once
			}
			return indexInterval
		case time.Since(reported) > indexLog:
			reported = time.Now()
			a.Logger.InfoContext(ctx, "messages are being indexed", "messages", total)
		}
		return time.Since(start) // as long as it has kept other writers waiting
	})
}

// How often idempotency keys that have expired are deleted, and how many in one
// transaction.
const (
	keySweepInterval = time.Hour
	keySweepBatch    = 1000
)

// sweepKeys deletes the idempotency keys that have expired.
func (a *App) sweepKeys(ctx context.Context) error {
	return core.Repeat(ctx, nil, func(ctx context.Context) time.Duration {
		n, err := a.Stores.Keys.Sweep(ctx, keySweepBatch)
		if err != nil && ctx.Err() == nil {
			a.Logger.WarnContext(ctx, "idempotency keys not swept", "err", err)
		}
		if err != nil || n < keySweepBatch {
			return keySweepInterval
		}
		return 0
	})
}
