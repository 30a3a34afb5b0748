package ops

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bobbin/app/core/config"
	"bobbin/app/db"
	"bobbin/app/wire"
)

// reindexPause is how long a reindexing waits for messages that another process indexes.
const reindexPause = 100 * time.Millisecond

// ReindexSearch indexes all messages again, also beside a server that runs on the database,
// and reports from time to time how many are left. Searches find everything meanwhile. It
// may be broken off: a server goes on. all = false goes on with what is not indexed yet.
func ReindexSearch(ctx context.Context, cfg config.Config, logger *slog.Logger, all bool, report func(left int64)) (err error) {
	database, err := db.Open(ctx, cfg.Database.URL.Reveal(), logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	if err := database.Migrate(ctx); err != nil {
		return err
	}
	search := wire.NewStores(database).Search
	if all {
		if _, err := search.Reindex(ctx); err != nil {
			return err
		}
	}
	var last time.Time
	for {
		if time.Since(last) > time.Second {
			left, err := search.Unindexed(ctx)
			if err != nil {
				return err
			}
			if report(left); left == 0 {
				return nil
			}
			last = time.Now()
		}
		n, _, err := search.IndexNext(ctx)
		if err != nil {
			return err
		}
		if n > 0 {
			continue
		}
		last = time.Time{}
		select {
		case <-time.After(reindexPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
