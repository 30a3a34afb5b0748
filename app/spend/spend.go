// Package spend keeps what the models cost that are called for an owner within
// the limits of a day.
//
// The books are the truth (model_calls): answers, summaries and titles alike, of
// all processes. They are asked before a message is accepted and before each call,
// and written after it. So calls that were under way when the limit was reached
// pass it, and no others: at most one for each run at work.
package spend

import (
	"context"
	"fmt"
	"time"

	"bobbin/app/core"
)

// books say what was spent.
type books interface {
	Spent(ctx context.Context, owner string, since time.Time) (core.Spent, error)
}

// Limit bounds a day of UTC; zero values are no limit.
type Limit struct {
	MicroUSD int64 // millionths of a US dollar
	Tokens   int64 // of prompts and answers
}

// Limiter refuses calls over the limits. Safe for concurrent use.
type Limiter struct {
	books  books
	limits map[string]Limit
	now    func() time.Time
}

// New returns a Limiter for the owners that have limits; now is the time.
func New(books books, limits map[string]Limit, now func() time.Time) *Limiter {
	return &Limiter{books: books, limits: limits, now: now}
}

// Check returns core.ErrSpendLimit when the owner has reached a limit today, with
// the time until midnight of UTC. Owners without a limit cost nothing to check.
func (l *Limiter) Check(ctx context.Context, owner string) error {
	limit, ok := l.limits[owner]
	if !ok {
		return nil
	}
	now := l.now().UTC()
	today := now.Truncate(24 * time.Hour)
	spent, err := l.books.Spent(ctx, owner, today)
	if err != nil {
		return fmt.Errorf("spend limit of %s: %w", owner, err)
	}
	reset := today.Add(24 * time.Hour)
	switch {
	case limit.MicroUSD > 0 && spent.MicroUSD >= limit.MicroUSD:
		return core.ErrSpendLimit(fmt.Sprintf("%g US dollars", float64(limit.MicroUSD)/1e6), now, reset)
	case limit.Tokens > 0 && spent.Tokens >= limit.Tokens:
		return core.ErrSpendLimit(fmt.Sprintf("%d tokens", limit.Tokens), now, reset)
	default:
		return nil
	}
}
