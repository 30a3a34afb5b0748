package app

import (
	"context"
	"time"

	"bobbin/app/transfer"
)

// buildTransfer builds what brings histories in and sessions out.
func (a *App) buildTransfer() *transfer.Service {
	l := a.cfg.Limits
	// A byte may be six in JSON: whatever is exported can be imported.
	line := 6*int(max(l.MessageBytes, l.ToolOutputBytes)) + 1<<20
	return transfer.New(transfer.Options{
		Sessions: a.repos.sessions, Messages: a.repos.messages, Summaries: a.repos.summaries, Feed: a.feed, Counter: a.counter, Added: a.keeper.Soon,
		Limits: transfer.Limits{
			Message: int(l.MessageBytes), Output: int(l.ToolOutputBytes), Line: line,
			Import: int64(l.ImportBytes), Messages: l.ImportMessages,
		},
	})
}

// How often idempotency keys that have expired are deleted, and how many at once.
const (
	keySweepInterval = time.Hour
	keySweepBatch    = 1000
)

// sweepKeys deletes the idempotency keys that have expired.
func (a *App) sweepKeys(ctx context.Context) error {
	ticker := time.NewTicker(keySweepInterval)
	defer ticker.Stop()
	for {
		for {
			n, err := a.repos.keys.Sweep(ctx, keySweepBatch)
			if err != nil && ctx.Err() == nil {
				a.log.WarnContext(ctx, "idempotency keys not swept", "err", err)
			}
			if err != nil || n < keySweepBatch {
				break
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}
