package app

import (
	"context"
	"time"
)

// searchLog is how often the indexing of old messages says how far it is, and
// searchRetry how long it waits after an error.
const (
	searchLog   = 10 * time.Second
	searchRetry = 5 * time.Second
)

// fillSearch makes searchable what was stored by a version without search, a
// little at a time, until all is done. Searches say meanwhile that they may miss
// something.
func (a *App) fillSearch(ctx context.Context) error {
	began, told, total := time.Now(), time.Now(), 0
	for ctx.Err() == nil {
		n, done, err := a.repos.search.Fill(ctx)
		total += n
		switch {
		case ctx.Err() != nil:
		case err != nil:
			a.log.WarnContext(ctx, "search index not filled", "err", err)
			select {
			case <-time.After(searchRetry):
			case <-ctx.Done():
			}
		case done && total > 0:
			a.log.InfoContext(ctx, "search index filled", "texts", total, "dur", time.Since(began))
			return nil
		case done:
			return nil
		case time.Since(told) > searchLog:
			told = time.Now()
			a.log.InfoContext(ctx, "search index is being filled", "texts", total)
		}
	}
	return nil
}
