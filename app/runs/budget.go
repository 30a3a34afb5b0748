package runs

import (
	"context"
	"fmt"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// DailyLimit bounds a day in UTC; zero values mean no limit.
type DailyLimit struct {
	MicroUSD int64 // millionths of a US dollar
	Tokens   int64 // of prompts and answers
}

// Budget keeps the cost of an owner's model calls within daily limits. Safe for concurrent use.
//
// The usage records (model_calls) are authoritative: answers, summaries and titles, of all
// processes. They are read before a message is accepted and before each call, and written after
// it. So calls in progress when the limit is reached may exceed it, and no others: at most one
// for each active run. A model without a price is not called for an owner with a limit in
// dollars.
type Budget struct {
	records core.UsageStore
	limits  map[string]DailyLimit
	now     func() time.Time
}

// NewBudget returns a Budget for the owners with limits; now returns the time.
func NewBudget(records core.UsageStore, limits map[string]DailyLimit, now func() time.Time) *Budget {
	return &Budget{records: records, limits: limits, now: now}
}

// Check returns core.ErrSpendLimit when the owner has reached a limit today, with the time
// until midnight UTC, and core.ErrModelUnpriced when a limit in US dollars cannot cover the
// model's calls. For owners without a limit the check is free.
func (b *Budget) Check(ctx context.Context, owner string, model llm.Info) error {
	limit, ok := b.limits[owner]
	if !ok {
		return nil
	}
	if limit.MicroUSD > 0 && !model.Priced() {
		return core.ErrModelUnpriced(model.Name)
	}
	now := b.now().UTC()
	today := now.Truncate(24 * time.Hour)
	spent, err := b.records.Spent(ctx, owner, today)
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
